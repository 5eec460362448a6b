"""Restricted environments: the job works, or ends at once with a message that names the cause."""

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from harness import Problem, Skip
from watched import Job
from namespace import mount


class Mounted:
    """A mount over a folder for the time of a test, visible in the tests' mount namespace only."""

    def __init__(self, folder: Path | str, *arguments: str):
        self.folder = str(folder)
        mount(*arguments, self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.folder], check=True)


def works(world, arguments: list, seconds: float = 60, **how) -> None:
    with Job(world.work, arguments, **how) as job:
        code = job.end(seconds)
        if code != 0 or job.out != " ok\n":
            raise Problem(f"exit status {code}, output {job.out[-200:]!r}, {job.err[-800:]!r}")
        if job.err:
            raise Problem(f"it works, but complains: {job.err[-500:]!r}")
        job.check_gone()


def refused(world, arguments: list, *patterns: str, seconds: float = 10, **how) -> None:
    with Job(world.work, arguments, **how) as job:
        if (code := job.end(seconds)) == 0:
            raise Problem("exit status 0")
        job.check_says(*patterns)
        if code < 0:
            raise Problem(f"ended by signal {-code}: {job.err[-500:]!r}")
        job.check_gone()


def works_or_says(world, arguments: list, *patterns: str, seconds: float = 60, **how) -> None:
    with Job(world.work, arguments, **how) as job:
        code = job.end(seconds)
        if code == 0 and job.out == " ok\n":
            job.check_gone()
            return
        if code <= 0:
            raise Problem(f"exit status {code}, output {job.out[-200:]!r}, {job.err[-500:]!r}")
        job.check_says(*patterns)
        if "panicked" in job.err:
            raise Problem(f"a panic instead of a message: {job.err[-500:]!r}")
        job.check_gone()


def full_dev_shm(world):
    with Mounted("/dev/shm", "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        filler = Path("/dev/shm/filler")
        try:
            filler.write_bytes(bytes(1 << 20))
        except OSError as full:
            if full.errno != errno.ENOSPC:
                raise
        with Job(world.work, [world.mpiexec, "-n", 2, world.programs / "send_modes"]) as job:
            if (code := job.end(120)) != 0:
                raise Problem(f"exit status {code}: {job.err[-500:]!r}")
        if os.listdir("/dev/shm") != ["filler"]:
            raise Problem(f"left in /dev/shm: {os.listdir('/dev/shm')}")


def read_only_dev_shm(world):
    with Mounted("/dev/shm", "-t", "tmpfs", "-o", "ro", "tmpfs"):
        works(world, [world.mpiexec, "-n", 2, world.programs / "hello"])


def read_only_folder(world):
    folder = world.work / "read-only"
    folder.mkdir(exist_ok=True)
    with Mounted(folder, "-t", "tmpfs", "-o", "ro", "tmpfs"):
        works(world, [world.mpiexec, "-n", 2, world.programs / "hello"], cwd=folder)


def read_only_tmp(world):
    with Mounted("/tmp", "-t", "tmpfs", "-o", "ro", "tmpfs"):
        works(world, [world.mpiexec, "-n", 2, world.programs / "hello"], env={"TMPDIR": "/nowhere"})


def folder_removed(world):
    """The working directory is gone before the job starts."""
    gone = world.work / "gone"
    gone.mkdir()
    works_or_says(world, ["sh", "-c", f"cd {gone} && rmdir {gone} && exec {world.mpiexec} -n 2 "
                          f"{world.programs / 'hello'}"], r"director")


def single_copy_refused(number: int):
    """Inside the ranks, and for the whole job."""
    def test(world):
        refuse = [world.refuse, "process_vm", number]
        for arguments in ([world.mpiexec, "-n", 2, *refuse, world.programs / "send_modes"],
                          [*refuse, world.mpiexec, "-n", 2, world.programs / "send_modes"]):
            works(world, arguments, seconds=120)
    return f"process_vm_readv gives {errno.errorcode[number]}", test


def system_call_refused(call: str, number: int):
    def test(world):
        works_or_says(world, [world.refuse, call, number, world.mpiexec, "-n", 2,
                              world.programs / "hello"], r"fishplate", r"memfd|pidfd|affinity|segment|shared")
    return f"{call} gives {errno.errorcode[number]}", test


def many_ranks(world):
    works(world, [world.mpiexec, "-n", 64, world.programs / "many_ranks"], seconds=120)


# Two of this machine's cores, or its only one.
CORES = sorted(os.sched_getaffinity(0))[:2]
# Binds a rank to the core that stands at its place among the words before `--`; a dash leaves it as it is.
BIND = """
while [ "$1" != -- ]; do cores+=("$1"); shift; done; shift
[ "${cores[FISHPLATE_RANK]}" = - ] || set -- taskset -c "${cores[FISHPLATE_RANK]}" "$@"
exec "$@"
"""


def bound(places: str, gives_way: bool):
    """Ranks bound to the first (a) or second (b) of two cores, or to none (-): who has a core spins, who shares one gives
    way. The spin is longer than any wait of the program."""
    def test(world):
        cores = [place if place == "-" else str(CORES["ab".index(place)]) for place in places]
        expected = [f"{rank} {'gives way' if gives_way else 'spins'}" for rank in range(len(places))]
        command = ["taskset", "-c", ",".join(map(str, CORES)), world.mpiexec, "--bind-to", "none", "-n", len(places),
                   "-x", "FISHPLATE_SPIN=10s", "bash", "-c", BIND, "bash", *cores, "--", world.programs / "crowd"]
        with Job(world.work, command) as job:
            code = job.end(60)
            if code != 0 or sorted(job.out.splitlines()) != expected:
                raise Problem(f"exit status {code}, {job.out!r}, {job.err[-500:]!r}")
            job.check_gone()
    return f"ranks bound to {places} {'give way' if gives_way else 'spin'}", test


def limited(what: str, *limits: str, ranks: int = 8):
    def test(world):
        works_or_says(world, ["prlimit", *limits, world.mpiexec, "-n", ranks, world.programs / "hello"],
                      r"fishplate")
    return f"limited {what}", test


def file_size(soft: bool, modelled: bool):
    """Files in memory are longer than the limit, which is meant for disks. Only the hard one holds for them."""
    def test(world):
        limit = f"--fsize={8 << 20}:{'unlimited' if soft else 8 << 20}"
        words = ["prlimit", limit, world.mpiexec, "-n", 2, *(["--fabric", "qdr", "--summary", "none"] if modelled else []), world.programs / "large_window"]
        if soft:
            works(world, words)
        else:
            refused(world, words, r"the hard limit on file sizes \(`ulimit -f`, 8388608 bytes\)", "raise it")
    return f"a {'soft' if soft else 'hard'} limit on file sizes, {'a modelled machine' if modelled else 'in memory'}", test


def compared_within_a_limit(world):
    """The recording does not fit: the comparison says so, and its folder is gone."""
    words = [world.mpiexec.parent / "fishplate", "compare", "--fabrics", "qdr,edr", "-n", 2, world.programs / "large_window"]
    refused(world, ["prlimit", "--fsize=1500:unlimited", *words], r"the limit on file sizes is reached: `ulimit -f`", seconds=60)


def modelled_addresses(world):
    refused(world, ["prlimit", f"--as={1 << 30}", world.mpiexec, "-n", 2, "--fabric", "qdr", world.programs / "hello"],
            r"limit on the address space \(ulimit -v, 1048576 KiB\)", "raise it")


def one_process(world):
    """Of a user without rights, whom such a limit binds: no thread can be started, and no rank."""
    user = ["setpriv", "--reuid=34567", "--regid=34567", "--clear-groups"]
    if os.getuid() != 0 or not shutil.which("setpriv") or subprocess.run([*user, "true"], capture_output=True).returncode:
        raise Skip("only root may become another user")
    fishplate = world.mpiexec.parent / "fishplate"
    if subprocess.run([*user, fishplate, "--version"], capture_output=True).returncode:
        raise Skip("other users cannot reach the command")
    hello = world.programs / "hello"
    for words in (["run", "-n", 2, hello], ["run", "-n", 2, "--fabric", "qdr", hello], ["compare", "-n", 2, "--fabrics", "qdr,edr", hello],
                  ["bench", "latency", "-m", "1:1", "--rounds", 1]):
        with Job(world.work, [*user, "prlimit", "--nproc=1:1", fishplate, *words]) as job:
            if job.end(30) != 1 or "panicked" in job.err:
                raise Problem(f"{words}: {job.err[-500:]}")
            job.check_says("cannot start", r"limit on processes is reached", r"`ulimit -u`")
            job.check_gone()


def odd_folders(world):
    """The linker ends the name of a folder at a colon, and replaces words in it: a tree that lies there is refused, not taken for a broken one."""
    tree = world.mpiexec.parent.parent
    for name in ("a:b", "a;b", "a$LIB", "a b", "a$b"):
        # Next to the tree, for hard links.
        odd = world.work / "odd" / name
        for file in ("bin/fishplate", "lib/libmpi_abi.so.1"):
            (odd / file).parent.mkdir(parents=True)
            os.link(tree / file, odd / file)
        try:
            words = [odd / "bin/fishplate", "run", "-n", 2, world.programs / "hello"]
            if name in ("a b", "a$b"):
                works(world, words)
            else:
                refused(world, words, "programs cannot find the library in", re.escape(str(odd)), "in a folder without them")
        finally:
            shutil.rmtree(world.work / "odd")


def endless_hosts(world):
    refused(world, ["prlimit", f"--as={512 << 20}", world.mpiexec, "--hostfile", "/dev/zero", "-n", 2, world.programs / "hello"], "--hostfile /dev/zero: more than 64 MiB")


def alone(world):
    works(world, [world.programs / "hello"])


def setting(variable: str, value: str, *patterns: str, launched: bool = True):
    def test(world):
        launcher = [world.mpiexec, "-n", 2] if launched else []
        refused(world, [*launcher, world.programs / "hello"], re.escape(variable), *patterns,
                env={variable: value})
    return f"{variable}={value}{'' if launched else ' without a launcher'}", test


def foreign_launcher(what: str, env: dict):
    """Another launcher's rank must not become rank 0 of 1."""
    def test(world):
        refused(world, [world.programs / "hello"], next(iter(env)), "mpiexec|fishplate run", env=env)
        # Within that surrounding, our own launcher works.
        works(world, [world.mpiexec, "-n", 2, world.programs / "hello"], env=env)
    return f"started by {what}", test


def closed(stream: str, redirection: str):
    def test(world):
        command = f'exec "$@" {redirection}'
        with Job(world.work, ["sh", "-c", command, "sh", world.mpiexec, "-n", 2,
                              world.programs / "hello"]) as job:
            job.end(10)
            if "panicked" in job.err:
                raise Problem(f"a panic: {job.err[-500:]!r}")
            job.check_gone()
    return f"{stream} is closed", test


def output_goes_nowhere(world):
    """The reader of a job's output leaves: the job ends, and so does the launcher."""
    with Job(world.work, ["sh", "-c", '"$@" | true', "sh", world.mpiexec, "-n", 2,
                          world.programs / "hello"]) as job:
        job.end(10)
        job.check_gone()


NO_LIBRARY = r"no RDMA devices can be used: .*Install rdma-core"
NO_DEVICE = r"this host has no RDMA device .*infiniband"


def info(world, *words: str, **how) -> tuple[int, str, str]:
    with Job(world.work, [world.mpiexec.parent / "fishplate", "info", *words], **how) as job:
        return job.end(10), job.out, job.err


def rdma_is_told(world, pattern: str) -> None:
    """`fishplate info` gives the reason against RDMA in one line. That is no error, unless a device was named."""
    code, out, err = info(world)
    lines = re.findall(r"^RDMA devices  .*", out, re.M)
    if code != 0 or err or len(lines) != 1 or not re.search(pattern, lines[0]):
        raise Problem(f"exit status {code}, {err!r}, {out!r}")
    code, out, _ = info(world, "--json")
    rdma = json.loads(out)["rdma"]
    if code != 0 or rdma["used"] or not re.search(pattern, rdma["problem"]):
        raise Problem(f"exit status {code}, {rdma}")
    code, _, err = info(world, env={"FISHPLATE_DEVICE": "nowhere0"})
    if code != 2 or "FISHPLATE_DEVICE=nowhere0" not in err:
        raise Problem(f"exit status {code} with FISHPLATE_DEVICE, {err!r}")


def no_libibverbs(world):
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    with contextlib.ExitStack() as hidden:
        for library in {os.path.realpath(name) for name in re.findall(r"libibverbs\.so\.1 .*=> (.*)", known)}:
            hidden.enter_context(Mounted(library, "--bind", "/dev/null"))
        rdma_is_told(world, NO_LIBRARY)


def no_rdma_device(world):
    devices = Path("/sys/class/infiniband")
    if devices.is_dir() and os.listdir(devices):
        _, out, _ = info(world)
        if not all(name in out for name in os.listdir(devices)):
            raise Problem(out)
        return
    rdma_is_told(world, f"{NO_DEVICE}|{NO_LIBRARY}")


def unknown_device(world):
    """A device that is not there is an error of a job on one host too, which would not use it."""
    for device in ("nowhere0", "tcp:nowhere0"):
        with Job(world.work, [world.mpiexec, "-n", 2, world.programs / "hello"], env={"FISHPLATE_DEVICE": device}) as job:
            if job.end(60) == 0 or f"FISHPLATE_DEVICE={device}: " not in job.err or "fishplate info" not in job.err:
                raise Problem(f"{device}: {job.out!r}, {job.err[-500:]!r}")
            job.check_gone()
    with Job(world.work, [world.mpiexec, "-n", 2, world.programs / "hello"], env={"FISHPLATE_DEVICE": "tcp:lo"}) as job:
        if job.end(60) != 0:
            raise Problem(job.err[-500:])


def modelled_threads(world):
    """OpenMP starts as many threads as a modelled host has cores for a rank, unless the user says otherwise."""
    fishplate = world.mpiexec.parent / "fishplate"
    machine = world.work / "six.toml"
    machine.write_text('[system.six]\nfrom = "qdr"\nhost = { cores = 6, source = "assumed: for a test" }\n')
    for options, wanted in [(["--fabric", machine], "6"), (["--fabric", machine, "--ppn", 2], "3"),
                            (["--fabric", machine, "-x", "OMP_NUM_THREADS=5"], "5"), ([], "none")]:
        words = ["env", "-u", "OMP_NUM_THREADS", fishplate, "run", "-n", 2, *options, "sh", "-c", "echo ${OMP_NUM_THREADS:-none}"]
        with Job(world.work, words) as job:
            if job.end(60) != 0 or job.out.split() != [wanted, wanted]:
                raise Problem(f"{options}: {job.out!r}, not {wanted}: {job.err[-500:]}")


def tests() -> list:
    return [
        ("threads of OpenMP on a modelled host", modelled_threads),
        ("/dev/shm is full", full_dev_shm),
        ("/dev/shm is read-only", read_only_dev_shm),
        ("the working directory is read-only", read_only_folder),
        ("/tmp is read-only", read_only_tmp),
        ("the working directory is gone", folder_removed),
        single_copy_refused(errno.EPERM),
        single_copy_refused(errno.ENOSYS),
        system_call_refused("memfd", errno.ENOSYS),
        system_call_refused("pidfd", errno.ENOSYS),
        system_call_refused("affinity", errno.EPERM),
        ("64 ranks", many_ranks),
        bound("aa", gives_way=True),
        bound("---", gives_way=True),
        # Ranks without a core of their own may meet on one, where they sleep.
        *([bound("ab", gives_way=False), bound("abab", gives_way=True)] if len(CORES) > 1 else []),
        limited("descriptors", "--nofile=24:24", ranks=16),
        limited("address space", f"--as={256 << 20}"),
        limited("file size", "--fsize=65536"),
        *(file_size(soft, modelled) for soft in (True, False) for modelled in (False, True)),
        ("a comparison within a limit on file sizes", compared_within_a_limit),
        ("a modelled machine within a limit on addresses", modelled_addresses),
        ("a limit of one process", one_process),
        ("trees in folders with odd names", odd_folders),
        ("an endless list of hosts", endless_hosts),
        limited("locked memory", "--memlock=0"),
        ("a program without a launcher is one rank", alone),
        setting("FISHPLATE_UNKNOWN", "1"),
        setting("FISHPLATE_UNKNOWN", "1", launched=False),
        setting("FISHPLATE_EAGER_LIMIT", "plenty", "plenty"),
        setting("FISHPLATE_RING_SLOTS", "1", "4"),
        setting("FISHPLATE_RANK", "0", launched=False),
        setting("FISHPLATE_SIZE", "two", launched=False),
        foreign_launcher("PMI", {"PMI_FD": "77", "PMI_RANK": "1", "PMI_SIZE": "2"}),
        foreign_launcher("PMIx", {"PMIX_NAMESPACE": "job", "PMIX_RANK": "1"}),
        foreign_launcher("Slurm", {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "0",
                                   "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "5"}),
        ("info without libibverbs", no_libibverbs),
        ("info without an RDMA device", no_rdma_device),
        ("a device that is not there", unknown_device),
        closed("standard input", "<&-"),
        closed("standard output", ">&-"),
        closed("standard error", "2>&-"),
        ("nobody reads the output", output_goes_nowhere),
    ]
