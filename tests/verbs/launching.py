"""Jobs over the machine's two hosts, as far as the launcher goes."""

import re

from harness import Case, Problem

SCRIPT = """
echo "$FISHPLATE_RANK/$FISHPLATE_SIZE $(hostname) $FISHPLATE_HOSTS $(ls /sys/class/infiniband | tr '\\n' ' ')"
"""


def each_on_its_host(world) -> None:
    done = world.job(4, "sh", "-c", SCRIPT)
    expected = [f"{rank}/4 host{host} 0*2,1*2 rxe{2 * host} rxe{2 * host + 1} "
                for rank, host in enumerate([0, 0, 1, 1])]
    if done.code != 0 or sorted(done.out.splitlines()) != expected or done.err:
        raise Problem(str(done))


def failure_is_told(world) -> None:
    done = world.job(4, "sh", "-c", "[ $FISHPLATE_RANK = 3 ] && kill -9 $$; sleep 1000", seconds=30)
    if done.code != 137 or not re.fullmatch(r"fishplate: rank 3 \(pid \d+, sh on 1\) was killed by SIGKILL.*\n", done.err):
        raise Problem(str(done))


def tests() -> list[Case]:
    return [
        Case("launching: each rank is on its host", each_on_its_host),
        Case("launching: a rank is killed", failure_is_told, short=False),
    ]
