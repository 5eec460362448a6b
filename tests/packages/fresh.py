#!/usr/bin/env python3
"""A fresh Debian, from `apt install` to the first answer of `fishplate compare`: the seconds of each step.

    tests/packages/fresh.py PACKAGE

The system is made by debootstrap (minbase) for the C library of this machine, once, and is unpacked for each run below build/. Commands run
in it by chroot in namespaces of their own, with this machine's network and the settings of its apt. Needs root.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Problem, Skip  # noqa: E402

HOME = harness.ROOT / "build/fresh"
MIRROR = "http://deb.debian.org/debian"
SECONDS, LONG_SECONDS = 300, 3000
# From the start of apt to the answer.
GOAL_SECONDS = 60
# Mounts for a command in the root, which end with it.
ENTER = ('mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" && mount -t proc proc "$0/proc" && cd "$0" && '
         'exec chroot "$0" /bin/sh -c \'cd /root && exec "$@"\' sh "$@"')
VARIABLES = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
EXAMPLE = "/usr/share/doc/fishplate/examples/heat.c"
COMPARE = ["fishplate", "compare", "--fabrics", "qdr,2xqdr,fdr,edr", "-n", "8,16", "./heat", "256", "100"]
# What a system writes by itself: caches, logs, and the lists of apt and dpkg.
OWN = ("var/cache/", "var/log/", "var/lib/apt/", "var/lib/dpkg/", "tmp/", "root/", "proc/", "sys/", "dev/", "run/")


def done(*words, seconds=SECONDS, code=0, **how) -> harness.Outcome:
    ran = harness.run([str(word) for word in words], seconds=seconds, **how)
    if ran.code != code:
        raise Problem(f"`{' '.join(map(str, words))}` ended with {ran.code}{harness.output(ran.out + ran.err)}")
    return ran


def suite() -> str:
    """The name of this machine's Debian, whose C library the package needs."""
    system = platform.freedesktop_os_release()
    if system["ID"] != "debian" or "VERSION_CODENAME" not in system:
        raise Skip(f"the package is for the C library of this machine, which is {system['ID']} and no release of Debian")
    return system["VERSION_CODENAME"]


def base() -> Path:
    """The archive of a fresh system."""
    if os.geteuid():
        raise Skip("only root makes a system by debootstrap")
    for tool in ("debootstrap", "unshare", "tar"):
        if not shutil.which(tool):
            raise Skip(f"there is no {tool}")
    archive = HOME / f"{suite()}.tar"
    if archive.exists():
        return archive
    HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME) as root:
        ran = harness.run(["debootstrap", "--variant=minbase", suite(), root, MIRROR], seconds=LONG_SECONDS)
        if ran.code:
            raise Skip(f"debootstrap ended with {ran.code}: {(ran.out + ran.err).splitlines()[-1:]}")
        done("tar", "--numeric-owner", "-C", root, "-cf", f"{archive}.new", ".")
    os.rename(f"{archive}.new", archive)
    return archive


class System:
    """A fresh Debian, below a temporary folder."""

    def __init__(self):
        archive = base()
        self.folder = tempfile.TemporaryDirectory(dir=HOME)
        self.root = Path(self.folder.name)
        done("tar", "--numeric-owner", "-C", self.root, "-xpf", archive)
        self.root.chmod(0o755)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        (self.root / "etc/apt/sources.list").write_text(f"deb {MIRROR} {suite()} main\n")
        settings = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True).stdout.splitlines()
        wanted = ("Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::Check-")
        (self.root / "etc/apt/apt.conf.d/90host").write_text("".join(f"{line}\n" for line in settings if line.startswith(wanted)))

    def __enter__(self) -> "System":
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, *words, **how) -> harness.Outcome:
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "env", "-i", *VARIABLES, "sh", "-c", ENTER, self.root]
        return done(*command, *words, **how)

    def files(self) -> set[str]:
        found = subprocess.run(["find", ".", "-xdev", "-printf", "%P\n"], cwd=self.root, capture_output=True, text=True).stdout
        return {path for path in found.splitlines() if not path.startswith(OWN)}


def measure(system: System, package: Path) -> tuple[list[tuple[str, float]], str]:
    """The seconds of each step, and the answer of `compare`."""
    shutil.copy(package, system.root / "root/fishplate.deb")
    steps, answer = [], ""
    for name, words in (("apt-get update", ["apt-get", "update", "-qq"]),
                        ("apt-get install ./fishplate.deb", ["apt-get", "install", "-y", "-qq", "./fishplate.deb"]),
                        (f"mpicc {Path(EXAMPLE).name}", ["mpicc", "-O2", EXAMPLE, "-o", "heat", "-lm"]),
                        (" ".join(COMPARE), COMPARE)):
        began = time.monotonic()
        answer = system.run(*words).out
        steps.append((name, time.monotonic() - began))
    if not all(machine in answer for machine in COMPARE[3].split(",")):
        raise Problem(f"no answer{harness.output(answer)}")
    return steps, answer


def check_man(system: System) -> None:
    """Pages as the package has them; `man` is no part of the smallest Debian."""
    system.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "man-db")
    page = system.run("man", "-P", "cat", "fishplate-compare").out
    if "NAME" not in page or "fishplate-compare" not in page or "--fabrics" not in page:
        raise Problem(f"`man fishplate-compare` shows{harness.output(page)}")


def check_purge(system: System, before: set[str]) -> None:
    """Nothing of ours is left. Packages that came with ours stay, with their own alternatives."""
    system.run("apt-get", "purge", "-y", "-qq", "fishplate")
    left = {path for path in system.files() - before if is_ours(system.root, path)}
    state = system.root / "var/lib/dpkg"
    left |= {str(path.relative_to(system.root)) for part in ("info/fishplate.*", "alternatives/mpi*") for path in state.glob(part)}
    if left:
        raise Problem(f"left behind: {sorted(left)}")


def is_ours(root: Path, path: str) -> bool:
    """A path that names Fishplate or MPI, lies in /opt, or is a link to there."""
    name, target = path.lower(), os.readlink(root / path) if (root / path).is_symlink() else ""
    return any(word in name or word in target for word in ("fishplate", "mpi")) and "compil" not in name or name.startswith("opt/")


def a_fresh_debian(package: Path) -> str:
    with System() as system:
        before = system.files()
        steps, _ = measure(system, package)
        check_man(system)
        check_purge(system, before)
    return f"{sum(seconds for _, seconds in steps):.0f} s from apt to the answer"


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    try:
        with System() as system:
            before = system.files()
            steps, answer = measure(system, Path(sys.argv[1]))
            check_man(system)
            check_purge(system, before)
    except Skip as why:
        harness.not_run("fresh-debian", str(why))
        return harness.NOT_RUN
    except Problem as problem:
        print(f"fresh-debian: {problem}", file=sys.stderr)
        return 1
    total = sum(seconds for _, seconds in steps)
    print(answer.strip().split("\n\n")[-1])
    print()
    for name, seconds in [*steps, ("all", total)]:
        print(f"{seconds:6.1f} s  {name}")
    print(f"The goal of {GOAL_SECONDS} s is {'met' if total <= GOAL_SECONDS else 'missed'}. `man fishplate-compare` shows its page, and purge leaves nothing.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
