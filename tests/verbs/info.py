"""`fishplate info` on a machine with devices: the port that a job would use, and the reasons for and against each."""

import json
import subprocess

from harness import Case, Problem

ADDRESSES = {"rxe0": "10.77.0.1", "rxe1": "10.77.1.1", "rxe2": "10.77.0.2", "rxe3": "10.77.1.2"}


def info(world, host: int, *words: str, device: str = "", rails: str = "", before: tuple = ()):
    command = [*before, world.prefix / "bin/fishplate", "info", *words]
    return world.on_host(host, *command, env={"FISHPLATE_DEVICE": device, "FISHPLATE_RAILS": rails})


def facts(world, host: int, **how) -> dict:
    done = info(world, host, "--json", **how)
    if done.code != 0 or done.err:
        raise Problem(str(done))
    return json.loads(done.out)


def rdma(world, host: int, **how) -> dict:
    return facts(world, host, **how)["rdma"]


def each_host_lists_its_own(world) -> None:
    for host in (0, 1):
        own = [f"rxe{2 * host}", f"rxe{2 * host + 1}"]
        found = rdma(world, host)
        if found["used"] != own or found["problem"] or [one["name"] for one in found["devices"]] != own:
            raise Problem(str(found))
        for rail, (name, one) in enumerate(zip(own, found["devices"])):
            expected = {
                "used": True, "why_not": None, "state": "active", "link_layer": "Ethernet", "interface": f"r{rail}h{host}",
                "gid": {"index": 1, "kind": "RoCE v2", "value": f"::ffff:{ADDRESSES[name]}"},
                "placement": "completion", "mtu_bytes": 4096,
            }
            if wrong := {key: one[key] for key in expected if one[key] != expected[key]}:
                raise Problem(f"{name}: {wrong}")
        job = facts(world, host)["job"]
        rails = job["rails"]["rails"]
        seen = [(rail["port"], rail["link_layer"], rail["subnet"]) for rail in rails]
        if seen != [(own[0], "Ethernet", "10.77.0.0"), (own[1], "Ethernet", "10.77.1.0")]:
            raise Problem(str(rails))
        if job["pairs"]["pairs"] != [[0, 0], [1, 1]] or job["pairs"]["cannot_reach"] != [[0, 1]]:
            raise Problem(str(job["pairs"]))
    if (used := rdma(world, 0, rails="1")["used"]) != ["rxe0"]:
        raise Problem(f"one rail is {used}")


def table_lines_up(world) -> None:
    done = info(world, 0)
    lines = done.out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.split()[:2] == ["device", "use"])
    header, first, second = lines[at], lines[at + 2], lines[at + 3]
    for title, one, two in (("use", "yes", "yes"), ("state", "active", "active"), ("on", "r0h0", "r1h0")):
        column = header.index(f" {title} ") + 1
        if not (first.startswith(one, column) and second.startswith(two, column)):
            raise Problem(f"{title}:\n{done.out}")
    if "GID 1 ::ffff:10.77.1.1: RoCE v2 with the port's IPv4 address" not in done.out:
        raise Problem(done.out)


def one_can_be_named(world) -> None:
    found = rdma(world, 1, device="rxe3")
    seen = found["used"], [one["why_not"] for one in found["devices"]]
    if seen != (["rxe3"], ["others were asked for", None]):
        raise Problem(str(found))
    if (used := rdma(world, 1, device="rxe3,rxe2")["used"]) != ["rxe3", "rxe2"]:
        raise Problem(f"the order of the names does not count: {used}")
    done = info(world, 0, device="rxe3")
    if done.code != 2 or "FISHPLATE_DEVICE=rxe3: there is no RDMA device rxe3; there are rxe0, rxe1" not in done.err:
        raise Problem(str(done))


def link_that_is_down_is_left_out(world) -> None:
    subprocess.run(["rail", "0", "down"], check=True)
    if (used := rdma(world, 0)["used"]) != ["rxe1"]:
        raise Problem(f"{used} of which rxe0 is down")
    subprocess.run(["rail", "0", "up"], check=True)
    subprocess.run(["rail", "1", "down"], check=True)
    found = rdma(world, 0)
    why = found["devices"][1]["why_not"] or ""
    if found["used"] != ["rxe0"] or "its link is down" not in why:
        raise Problem(str(found))
    done = info(world, 0, device="rxe1")
    if done.code != 2 or "its link is down" not in done.err:
        raise Problem(str(done))


def limit_on_memory_is_told(world) -> None:
    limited = "prlimit", "--memlock=65536:65536"
    if (bytes_ := rdma(world, 0, before=limited)["memlock_bytes"]) != 65536:
        raise Problem(f"{bytes_} bytes")
    if (words := "a process may lock at most 65536 bytes here") not in (done := info(world, 0, before=limited)).out:
        raise Problem(f"no {words!r} in {done.out}")
    if "may lock" in (done := info(world, 0, before=("prlimit", "--memlock=unlimited"))).out:
        raise Problem(done.out)


def tests() -> list[Case]:
    return [
        Case("info: each host lists its own devices", each_host_lists_its_own),
        Case("info: the table lines up", table_lines_up, short=False),
        Case("info: devices can be named", one_can_be_named, short=False),
        Case("info: a link that is down is left out", link_that_is_down_is_left_out, short=False),
        Case("info: a limit on memory is told", limit_on_memory_is_told, short=False),
    ]
