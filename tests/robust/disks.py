"""Files on real storage that fails: system calls with injected errors (strace), a full disk in memory and on a device.

A collective call fails on all ranks with the class of the error or on none, the others end, and the file works afterwards.
"""

import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from harness import Problem, Skip
from watched import Job

RANKS = 3
# The class without an error.
SUCCESS = 0
ERRORS = {"EIO": "MPI_ERR_IO", "ENOSPC": "MPI_ERR_NO_SPACE", "EDQUOT": "MPI_ERR_QUOTA", "ESTALE": "MPI_ERR_IO", "EINTR": "MPI_SUCCESS"}
# The most calls of one kind on a rank at which an error is injected.
MOST = 40


def classes(world) -> dict:
    """The numbers of error classes, from the header."""
    text = (world.mpiexec.parent.parent / "include/mpi.h").read_text()
    return {name: int(number) for name, number in re.findall(r"^#define (MPI_ERR_\w+|MPI_SUCCESS) (\d+)$", text, re.MULTILINE)}


def outcomes(text: str) -> list:
    """Name, whether all ranks take part, classes."""
    lines = re.findall(r"^(\D+) ([01])((?: \d+)+)$", text, re.MULTILINE)
    return [(name, together == "1", [int(number) for number in numbers.split()]) for name, together, numbers in lines]


def run(world, file: Path, size: int, before: list, env=None) -> tuple:
    """The outcomes of a job, and what it has said."""
    words = [world.mpiexec, "-n", RANKS, *before, world.programs / "disk", file, size, "again"]
    with Job(world.work, words, env=env) as job:
        if (code := job.end(60)) != 0:
            raise Problem(f"exit status {code}: {job.err[-800:]}")
        job.check_gone()
        found, said = outcomes(job.out), job.err
    if "differ" in said:
        raise Problem(said)
    check_agreed(found)
    return found, said


def check_agreed(found: list) -> None:
    if [name for name, *_ in found][-4:] != ["write again", "sync again", "read again", "close"]:
        raise Problem(f"the outcomes are {found}")
    for name, together, numbers in found:
        if len(numbers) != RANKS or together and len(set(numbers)) > 1:
            raise Problem(f"{name} has the classes {numbers}")


def strace(rank: int, file: Path, log: Path, call: str, error: str, when: int) -> list:
    """The words that let one rank run under strace."""
    inject = f"-f -o {log} -P {file} -e trace={call} -e inject={call}:error={error}:when={when}"
    script = f'if [ "$FISHPLATE_RANK" = {rank} ]; then exec strace {inject} "$@"; fi; exec "$@"'
    return ["sh", "-c", script, "sh"]


def check_strace() -> None:
    if not shutil.which("strace"):
        raise Skip("no strace here")
    probe = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", "inject=getpgid:error=EIO", "true"], capture_output=True, text=True)
    if probe.returncode:
        raise Skip(f"strace may not trace here: {probe.stderr.strip()[-200:]}")


def injected(call: str, error: str, rank: int = RANKS - 1):
    """An error at every call of one kind on a rank, one in each run. strace counts the calls of each thread, so one strikes the rank's own
    thread and one its worker, if both make as many calls."""
    def test(world):
        check_strace()
        wanted = classes(world)[ERRORS[error]]
        file, log = world.work / "disk-file", world.work / "strace"
        struck = 0
        for when in range(1, MOST):
            log.unlink(missing_ok=True)
            found, _ = run(world, file, 4096, strace(rank, file, log, call, error, when))
            file.unlink(missing_ok=True)
            if not (strikes := log.read_text(errors="replace").count("(INJECTED)")):
                break
            struck += strikes
            failed = [(name, numbers) for name, _, numbers in found if set(numbers) != {SUCCESS}]
            if error == "EINTR" and failed:
                raise Problem(f"call {when} of {call} with {error}: {failed}")
            is_right = all(numbers[rank] == wanted and set(numbers) <= {SUCCESS, wanted} for _, numbers in failed)
            if error != "EINTR" and (len(failed) != strikes or not is_right):
                raise Problem(f"call {when} of {call} with {error}: {failed}, not class {wanted} of {strikes} calls")
        if not struck:
            raise Problem("no error has struck")
        print(f"   {struck} calls of {call} with {error}")
    return f"files: {call} fails with {error}, at each call of a rank", test


@contextmanager
def small_tmpfs(world):
    folder = world.work / "small"
    folder.mkdir(exist_ok=True)
    if (done := subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, text=True)).returncode:
        raise Skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def small_ext4(world):
    folder, image = world.work / "small", world.work / "image"
    folder.mkdir(exist_ok=True)
    if not (make := shutil.which("mkfs.ext4", path=os.environ["PATH"] + ":/usr/sbin:/sbin")):
        raise Skip("no mkfs.ext4 here")
    with image.open("wb") as file:
        file.truncate(1 << 20)
    try:
        subprocess.run([make, "-q", "-F", "-O", "^has_journal", "-m", "0", image], check=True)
        if (done := subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True, text=True)).returncode:
            raise Skip(f"no image can be mounted here: {done.stderr.strip()}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", folder], check=True)
    finally:
        image.unlink(missing_ok=True)


def full(name: str, mounted):
    """More than the disk holds: each write fails on all ranks that it concerns, in every form, and the emptied file works."""
    def test(world):
        no_space = classes(world)["MPI_ERR_NO_SPACE"]
        with mounted(world) as folder:
            found, _ = run(world, folder / "file", 2 << 20, [])
            (folder / "file").unlink()
        by_name = {name: numbers for name, _, numbers in found}
        for write in ("write_at_all", "write_at", "iwrite_at", "iwrite_at_all", "write_at_all_begin"):
            if set(by_name[write]) != {no_space}:
                raise Problem(f"{write} on a full disk has the classes {by_name[write]}, not {no_space}")
        for again in ("set_size", "write again", "sync again", "read again", "close"):
            if set(by_name[again]) != {SUCCESS}:
                raise Problem(f"{again} has the classes {by_name[again]}")
    return f"files: a full disk, {name}", test


def tests() -> list:
    return [
        *[injected(call, error) for call, error in (("pwrite64", "EIO"), ("pwrite64", "ENOSPC"), ("pwrite64", "EDQUOT"), ("pwrite64", "EINTR"),
                                                    ("pread64", "EIO"), ("pread64", "ESTALE"), ("pread64", "EINTR"))],
        injected("ftruncate", "EIO", rank=0),
        full("in memory", small_tmpfs),
        full("on a device", small_ext4),
    ]
