"""`fishplate info` and the settings on hosts with interfaces of all kinds."""

import json
import time

from harness import Case, Problem
from network import Hosts, ip


def info(hosts: Hosts, host: int) -> dict:
    ran = hosts.inside(hosts.host(host), hosts.prefix / "bin/fishplate", "info", "--json")
    if ran.code != 0:
        raise Problem(ran.err)
    return {one["name"]: one for one in json.loads(ran.out)["ip"]["interfaces"]}


def soon(hosts: Hosts, holds) -> dict:
    """The interfaces of host 0 once they are as a test wants them: the kernel tells of a link's state a moment later."""
    end = time.monotonic() + 5
    while not holds(found := info(hosts, 0)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def must(is_right: bool, interfaces: dict) -> None:
    if not is_right:
        raise Problem(json.dumps(interfaces, indent=1))


def chosen(interfaces: dict) -> set:
    return {name for name, one in interfaces.items() if one["used"]}


def kinds(world) -> None:
    """Both rails are used; a bridge, a tunnel and a link without a carrier are not, unless nothing better is left."""
    with Hosts(world.prefix, rails=2) as hosts:
        namespace = hosts.host(0)
        more = {"docker0": ("bridge", "172.17.0.1/16"), "tun9": ("tuntap", "10.9.0.1/24"), "idle0": ("veth", "10.8.0.1/24")}
        ip("-n", namespace, "link", "add", "docker0", "type", "bridge")
        ip("-n", namespace, "link", "add", "port0", "type", "veth", "peer", "name", "port1")
        ip("-n", namespace, "link", "set", "port0", "master", "docker0", "up")
        ip("-n", namespace, "link", "set", "port1", "up")
        ip("-n", namespace, "tuntap", "add", "tun9", "mode", "tun")
        ip("-n", namespace, "link", "add", "idle0", "type", "veth", "peer", "name", "idle1")
        for name, (_, address) in more.items():
            ip("-n", namespace, "addr", "add", address, "dev", name)
            ip("-n", namespace, "link", "set", name, "up")
        found = soon(hosts, lambda found: "without" in (found["docker0"]["why_not"] or ""))
        must(chosen(found) == {"eth0", "eth1"}, found)
        for name, why in (("lo", "this host only"), ("docker0", "a bridge without"), ("port0", "a port"), ("port1", "link-local"),
                          ("idle0", "link is down"), ("tun9", "link is down")):
            must(why in found[name]["why_not"], found)
        for rail, left in ((1, {"eth0"}), (0, {"port1"})):
            hosts.link(0, rail, "down")
            found = soon(hosts, lambda found: chosen(found) == left)
            must(chosen(found) == left and found[f"eth{rail}"]["why_not"] == "it is down", found)
        ip("-n", namespace, "addr", "flush", "dev", "port1")
        must(chosen(info(hosts, 0)) == {"docker0"}, info(hosts, 0))


def addresses(world) -> None:
    """The address of an interface: IPv4, else global IPv6, else link-local."""
    for family, beginning, why in ((4, "10.77.", "IPv4"), (6, "fd77:", "IPv6"), (0, "fe80:", "only")):
        with Hosts(world.prefix, family=family) as hosts:
            eth = info(hosts, 0)["eth0"]
            must(eth["used"] and eth["address"].startswith(beginning) and why in eth["why_address"], eth)
            must(eth["mtu_bytes"] == 1500, eth)


def named(world) -> str:
    """FISHPLATE_DEVICE names an interface or its address, and a wrong one is an error that lists those there are."""
    with Hosts(world.prefix, rails=2) as hosts:
        for wanted, rail in (("tcp:eth1", 1), (f"tcp:{hosts.address(0, 0)}", 0)):
            before = [hosts.carried(other) for other in (0, 1)]
            ran = hosts.job(2, hosts.prefix / "tests/programs/hello", env={"FISHPLATE_DEVICE": wanted})
            if wanted.startswith("tcp:eth") and ran.code != 0:
                raise Problem(f"{wanted}: {ran.err}")
            bytes_of = [hosts.carried(other) - before[other] for other in (0, 1)]
            if ran.code == 0 and bytes_of[rail] <= bytes_of[1 - rail]:
                raise Problem(f"{wanted}: {bytes_of}")
        ran = hosts.job(2, hosts.prefix / "tests/programs/hello", env={"FISHPLATE_DEVICE": "tcp:eth7"})
        if ran.code == 0 or "eth7" not in ran.err:
            raise Problem(f"tcp:eth7: {ran.code} {ran.err}")
        return ran.err.strip().splitlines()[0]


def tests() -> list[Case]:
    return [
        Case("shown: interfaces of all kinds", kinds),
        Case("shown: addresses of all kinds", addresses),
        Case("shown: an interface that the user names", named),
    ]
