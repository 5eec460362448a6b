"""The machine: its devices, hosts that see their own devices only, and rails that break and recover."""

import subprocess
from pathlib import Path

import harness
from harness import Case, Problem

# Few exchanges: each takes milliseconds on an emulated processor.
EXCHANGES = 50


def traffic(port: str) -> int:
    counters = Path(f"/sys/class/net/{port}/statistics")
    return sum(int((counters / name).read_text()) for name in ("tx_packets", "rx_packets"))


def exchange(rail: int, seconds: float = 60) -> bool:
    """Whether messages between the hosts arrive over one rail, by the example program of libibverbs."""
    common = ["ibv_rc_pingpong", "-g", "1", "-n", str(EXCHANGES), "-p", str(18515 + rail)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    server = subprocess.Popen(["on-host", "1", *common, "-d", f"rxe{2 + rail}"], **quiet)
    # The two ends first talk over TCP; a client that starts before its server tries again.
    script = 'until "$@"; do sleep 0.3; done'
    client = subprocess.Popen(["on-host", "0", "sh", "-c", script, "sh", *common, "-d", f"rxe{rail}", "127.0.0.1"], **quiet)
    try:
        return client.wait(seconds) == 0 and server.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        for process in (client, server):
            harness.kill_session(process.pid)
            process.wait()


def state(host: int, device: str, world) -> str:
    words = world.on_host(host, "ibv_devinfo", "-d", device).out.split()
    return words[words.index("state:") + 1]


def all_are_there(world) -> None:
    expected = {"rxe0": "10.77.0.1", "rxe1": "10.77.1.1", "rxe2": "10.77.0.2", "rxe3": "10.77.1.2"}
    for device, address in expected.items():
        folder = Path(f"/sys/class/infiniband/{device}/ports/1")
        digits = "".join(f"{int(part):02x}" for part in address.split("."))
        if not (gid := (folder / "gids/1").read_text().strip()).endswith(f"ffff:{digits[:4]}:{digits[4:]}"):
            raise Problem(f"{device} has {gid} at index 1, not {address}")
        if "ACTIVE" not in (folder / "state").read_text():
            raise Problem(f"{device} is not active")


def hosts_see_their_own(world) -> None:
    for host in (0, 1):
        script = "hostname; ls /sys/class/infiniband; ls /dev/infiniband; touch /dev/shm/mine; ls /dev/shm"
        seen = world.on_host(host, "sh", "-c", script).out.split()
        own = [str(2 * host), str(2 * host + 1)]
        expected = [f"host{host}", *(f"rxe{n}" for n in own), "rdma_cm", *(f"uverbs{n}" for n in own), "mine"]
        if seen != expected:
            raise Problem(f"{seen}, not {expected}")
        listed = world.on_host(host, "ibv_devices").out
        if [word for word in listed.split() if word.startswith("rxe")] != [f"rxe{n}" for n in own]:
            raise Problem(listed)
    if Path("/dev/shm/mine").exists():
        raise Problem("/dev/shm is shared")
    if (code := world.on_host(1, "sh", "-c", "exit 9").code) != 9:
        raise Problem(f"exit status {code}, not 9")


def rails_carry(world) -> None:
    for rail in (0, 1):
        before = traffic(f"r{rail}h0"), traffic(f"r{1 - rail}h0")
        if not exchange(rail):
            raise Problem(f"nothing arrives over rail {rail}")
        after = traffic(f"r{rail}h0"), traffic(f"r{1 - rail}h0")
        if after[0] - before[0] < 2 * EXCHANGES or after[1] - before[1] > EXCHANGES:
            raise Problem(f"{EXCHANGES} exchanges over rail {rail} moved the counters from {before} to {after}")


def rail_breaks_and_mends(how: str, here: str, there: str):
    def test(world) -> None:
        if world.run("rail", "1", how).code != 0:
            raise Problem(f"rail 1 {how} fails")
        seen = state(0, "rxe1", world), state(1, "rxe3", world), state(0, "rxe0", world)
        if seen != (f"PORT_{here}", f"PORT_{there}", "PORT_ACTIVE"):
            raise Problem(f"ports are {seen}")
        if exchange(1, seconds=4):
            raise Problem("messages still arrive")
        if how == "cut" and not exchange(0):
            raise Problem("the other rail is broken too")
        if world.run("rail", "1", "up").code != 0 or not exchange(1):
            raise Problem("nothing arrives over rail 1 when it is up again")
    return test


def tests() -> list[Case]:
    return [
        Case("devices: all four are there, with their addresses", all_are_there),
        Case("devices: each host sees its own", hosts_see_their_own, short=False),
        Case("rails: packets cross the one that is used", rails_carry, short=False),
        Case("rails: down", rail_breaks_and_mends("down", "DOWN", "DOWN"), short=False),
        Case("rails: pull", rail_breaks_and_mends("pull", "DOWN", "DOWN"), short=False),
        Case("rails: cut", rail_breaks_and_mends("cut", "ACTIVE", "ACTIVE")),
    ]
