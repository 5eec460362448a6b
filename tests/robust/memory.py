"""No memory is lost between MPI_Init and MPI_Finalize, by valgrind: without a launcher, and by a launcher."""

import re
import shutil
import subprocess

from harness import Problem, Skip

SECONDS = 120


def tests():
    yield "no memory is lost without a launcher", lambda world: check(world, [], 1)
    yield "no memory is lost by two ranks", lambda world: check(world, [world.mpiexec, "-n", 2], 2)


def check(world, launcher: list, ranks: int) -> None:
    if not shutil.which("valgrind"):
        raise Skip("there is no valgrind")
    for log in world.work.glob("valgrind.*"):
        log.unlink()
    valgrind = ["valgrind", "--leak-check=full", f"--log-file={world.work}/valgrind.%p"]
    ran = subprocess.run([str(word) for word in (*launcher, *valgrind, world.programs / "hello")], capture_output=True, text=True, timeout=SECONDS,
                         check=False)
    if ran.returncode:
        raise Problem(f"the job ended with {ran.returncode}: {ran.stderr[-500:]}")
    logs = [log.read_text() for log in world.work.glob("valgrind.*")]
    if len(logs) != ranks:
        raise Problem(f"{len(logs)} logs of {ranks} ranks")
    for log in logs:
        lost = dict(re.findall(r"(definitely|indirectly|possibly) lost: ([\d,]+) bytes", log))
        if set(lost) != {"definitely", "indirectly", "possibly"} or set(lost.values()) != {"0"} or "ERROR SUMMARY: 0 errors" not in log:
            raise Problem(f"valgrind reports:\n{log}")
