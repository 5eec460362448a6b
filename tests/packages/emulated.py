"""`make wheel MACHINE=aarch64` and `make deb MACHINE=aarch64`: installed into a root of Debian for that processor, and run there under QEMU.

The kernel starts programs of the root by QEMU within a user namespace of the test (Linux 6.7 or later), so nothing of the system changes.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import debian
import harness
import versions
import wheel
from harness import Case, Problem, Skip
from wheel import done, scratch

MACHINE, ARCHITECTURE = "aarch64", "arm64"
SECONDS, LONG_SECONDS = 900, 3000
PACKAGES = ["dash", "coreutils", "findutils", "grep", "sed", "libc-bin", "dpkg", "diffutils", "python3", "python3-venv"]
# Debian 12 has this version of Python.
PYTHON = "311"
EMULATOR, COMPILER = f"qemu-{MACHINE}-static", f"{MACHINE}-linux-gnu-gcc"
# The head of an ELF file for this processor, and the bits of it that count.
MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"

ENTER = """
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' ':fishplate:M::MAGIC:MASK:EMULATOR:F' >/proc/sys/fs/binfmt_misc/register
for folder in proc dev sys; do mkdir -p ROOT/$folder; mount --rbind /$folder ROOT/$folder; done
mkdir -p ROOT/tmp
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
exec chroot ROOT /bin/sh -euc "$1"
"""


class Emulated:
    """A root of the other kind of processor, made anew."""

    def __init__(self, work: Path):
        for tool in (EMULATOR, COMPILER, "apt-get", "dpkg-deb"):
            if not shutil.which(tool):
                raise Skip(f"there is no {tool}")
        self.root, self.enter = work / "root", work / "enter"
        cache = harness.ROOT / "build/foreign"
        try:
            system = debian.installed(PACKAGES, cache / ARCHITECTURE, cache, bare=True, architecture=ARCHITECTURE)
        except debian.Unavailable as why:
            raise Skip(str(why)) from None
        shutil.copytree(system, self.root, symlinks=True)
        words = {"MAGIC": MAGIC, "MASK": MASK, "EMULATOR": shutil.which(EMULATOR), "ROOT": str(self.root)}
        script = ENTER
        for word, text in words.items():
            script = script.replace(word, text)
        self.enter.write_text(script)
        if subprocess.run(self.words("true"), capture_output=True, check=False).returncode:
            raise Skip("this kernel has no binfmt_misc of a user namespace, by which QEMU would start programs")

    def words(self, script: str) -> list:
        return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-eu", self.enter, script]

    def run(self, script: str, *wanted: str) -> harness.Outcome:
        """Runs lines of a shell in the root. Their output must have the wanted texts."""
        ran = done(*self.words(script), seconds=SECONDS)
        for text in wanted:
            if text not in ran.out:
                raise Problem(f"no {text!r} in the output of {script!r}{harness.output(ran.out + ran.err)}")
        return ran

    def compile(self, mpicc: Path) -> None:
        """A program of this processor, by the compiler command of the tree in the root."""
        programs = harness.ROOT / "tests/programs"
        done(mpicc, f"-cc={COMPILER}", programs / "hello.c", "-I", programs, "-o", self.root / "hello")


def made(target: str) -> Path:
    ran = done("make", "--no-print-directory", target, f"MACHINE={MACHINE}", seconds=LONG_SECONDS, cwd=harness.ROOT)
    return harness.ROOT / ran.out.splitlines()[-1]


def wheel_for_aarch64(_world):
    package = made("wheel")
    with scratch() as name:
        there = Emulated(Path(name))
        wheels = there.root / "wheels"
        wheels.mkdir()
        shutil.copy(package, wheels)
        platforms = [f"--platform=manylinux{kind}_{MACHINE}" for kind in ("2014", "_2_17", "_2_28")]
        done(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--no-deps", *platforms,
             f"--python-version={PYTHON}", "--implementation=cp", "--dest", wheels, wheel.MPI4PY, seconds=SECONDS)
        there.run("python3 -m venv /venv; /venv/bin/pip install --quiet --no-index --find-links /wheels fishplate mpi4py")
        there.compile(there.root / "venv/bin/mpicc")
        there.run("uname -m; /venv/bin/fishplate --version", MACHINE, "fishplate ")
        there.run("/venv/bin/mpiexec -n 2 /hello; /venv/bin/mpiexec -n 2 --fabric qdr /hello; /venv/bin/fishplate run -n 1 /hello")
        (there.root / "identity.py").write_text(wheel.IDENTITY)
        there.run("/venv/bin/mpiexec -n 2 /venv/bin/python /identity.py", f"2 Fishplate {versions.OURS}\n" * 2)
        (there.root / "alone.py").write_text(wheel.ALONE)
        there.run("/venv/bin/python /alone.py", f"1 Fishplate {versions.OURS}")
        there.run("cd /tmp; /venv/bin/fishplate compare --quick --fabrics qdr,edr -n 2 /hello", "qdr", "edr")
        there.run("/venv/bin/fishplate bench latency -m 8:8", "latency")
        there.run("mkdir /tmp/man; /venv/bin/fishplate man /tmp/man; ls /tmp/man", "fishplate-compare.1")
        there.run("/venv/bin/pip uninstall --yes fishplate mpi4py; ! find /venv -name '*fishplate*' | grep .")
        return f"{package.stat().st_size} bytes"


def debian_package_for_aarch64(_world):
    package = made("deb")
    fields = done("dpkg-deb", "--field", package, "Package", "Architecture", "Depends").out
    for text in ("Package: fishplate", f"Architecture: {ARCHITECTURE}", "Depends: libc6 (>= 2."):
        if text not in fields:
            raise Problem(f"no {text!r}{harness.output(fields)}")
    with scratch() as name:
        there = Emulated(Path(name))
        shutil.copy(package, there.root / "fishplate.deb")
        folders = "/var/lib/dpkg/updates /var/lib/dpkg/info /var/lib/dpkg/alternatives /var/log /etc/alternatives"
        there.run(f"mkdir -p {folders}; touch /var/lib/dpkg/status; dpkg --force-depends --install /fishplate.deb")
        there.compile(there.root / "opt/fishplate/bin/mpicc")
        there.run("fishplate --version; mpiexec -n 2 /hello; mpiexec -n 2 --fabric qdr /hello", "fishplate ")
        there.run("dpkg --remove fishplate; ! find /opt /usr /etc/alternatives -name '*fishplate*' | grep .; ! ls /usr/bin/mpiexec")
        return f"{package.stat().st_size} bytes"


CASES = [
    Case(f"pip on {MACHINE}", wheel_for_aarch64),
    Case(f"dpkg on {MACHINE}", debian_package_for_aarch64),
]
