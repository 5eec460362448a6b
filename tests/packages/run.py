#!/usr/bin/env python3
"""Installs Fishplate as users do, and removes it: `make install`, `make uninstall`, a Debian package, a wheel, a container image,
and the package in a fresh Debian.

    tests/packages/run.py [--only TEXT] [--list]

Needs `make stage`. What this machine has no tools for is not run, and said so. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402

import emulated  # noqa: E402
import fresh  # noqa: E402
import image  # noqa: E402
import version  # noqa: E402
import wheel  # noqa: E402

TREE = harness.ROOT / "scripts/install-tree"
# Time limits of a command, and of one that compiles.
SECONDS, LONG_SECONDS = 120, 3000


def done(*words, seconds=SECONDS, code=0, **how):
    ran = harness.run([str(word) for word in words], seconds=seconds, **how)
    if ran.code != code:
        raise Problem(f"`{' '.join(map(str, words))}` ended with {ran.code}{harness.output(ran.out + ran.err)}")
    return ran


def contents(folder: Path) -> set:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def runs(prefix: Path, work: Path):
    """A program is compiled and run with what lies in the prefix, and with nothing else of ours."""
    program = work / "hello"
    environment = {"PATH": f"{prefix / 'bin'}:/usr/bin:/bin"}
    done(prefix / "bin/mpicc", harness.ROOT / "tests/programs/hello.c", "-I", harness.ROOT / "tests/programs", "-o", program, env=environment)
    ran = done(prefix / "bin/mpiexec", "-n", 2, program, env=environment)
    mapped = done("ldd", program).out
    if str(prefix / "lib/libmpi_abi.so.1") not in mapped:
        raise Problem(f"the program is linked with another library{harness.output(mapped)}")
    if wheel.fortran_runs(prefix / "bin", work, environment) and str(prefix / "lib/libmpifort_abi.so.1") not in done("ldd", work / "hello-fortran").out:
        raise Problem("the program in Fortran is linked with another library")
    return ran


def scratch():
    return tempfile.TemporaryDirectory(prefix="fishplate-packages-")


def installed_and_removed(_world):
    with scratch() as name:
        work = Path(name)
        prefix = work / "new/prefix"
        words = ["make", "--no-print-directory", f"PREFIX={prefix}"]
        # The modules for a compiler that is named lie in the tree, also for pkg-config.
        words += [f"FC={wheel.FORTRAN}"] * bool(shutil.which(wheel.FORTRAN))
        ran = done(*words, "install", seconds=LONG_SECONDS, cwd=harness.ROOT)
        if f"export PATH={prefix}/bin:$PATH" not in ran.out:
            raise Problem(f"the installation does not say what next{harness.output(ran.out)}")
        runs(prefix, work)
        for part in ("share/man/man1/fishplate.1", "share/man/man1/fishplate-bench-latency.1", "share/man/man1/mpiexec.1",
                     "share/bash-completion/completions/mpiexec", "share/zsh/site-functions/_fishplate",
                     "share/fish/vendor_completions.d/fishplate.fish", "share/doc/fishplate/LICENSE-MIT",
                     "share/doc/fishplate/README.md", "share/doc/fishplate/docs/user/running.md", "share/doc/fishplate/examples/heat.c"):
            if not (prefix / part).stat().st_size:
                raise Problem(f"{part} is empty")
        if len(words) > 3:
            modules = done(prefix / "bin/mpifort", f"-fc={wheel.FORTRAN}", "-modules").out.strip()
            if Path(modules) != (prefix / "lib/fishplate/modules/default").resolve():
                raise Problem(f"the modules were built ahead, and mpifort takes those in {modules}")
        done("bash", "-n", prefix / "share/bash-completion/completions/fishplate")
        done(*words, "uninstall", cwd=harness.ROOT)
        # Folders above the prefix were not there before, and are nobody's.
        if prefix.exists():
            raise Problem(f"left behind: {sorted(contents(prefix))}")


def others_stay(_world):
    with scratch() as name:
        work = Path(name)
        image, prefix = work / "image", work / "prefix"
        for file in ("bin/fishplate", "lib/libmpi_abi.so.1", "share/doc/fishplate/LICENSE"):
            (image / file).parent.mkdir(parents=True, exist_ok=True)
            (image / file).write_text(file)
        (image / "bin/mpiexec").symlink_to("fishplate")
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin/gcc").write_text("another's")
        before = contents(prefix)
        done(TREE, "copy", image, prefix)
        if not (prefix / "bin/mpiexec").is_symlink():
            raise Problem("a link became a file")
        # A second installation replaces the first.
        (image / "share/doc/fishplate/LICENSE").unlink()
        done(TREE, "copy", image, prefix)
        if (prefix / "share/doc/fishplate/LICENSE").exists():
            raise Problem("a file of the older installation is left")
        done(TREE, "remove", prefix)
        if contents(prefix) != before:
            raise Problem(f"before: {sorted(before)}; after: {sorted(contents(prefix))}")
        if "nothing is installed" not in done(TREE, "remove", prefix, code=1).err:
            raise Problem("a second removal does not say that nothing is there")


def no_permission(_world):
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise Skip("root may write everywhere, and there is no setpriv")
    with scratch() as name:
        work = Path(name)
        work.chmod(0o755)
        script = shutil.copy(TREE, work)
        closed = work / "closed"
        closed.mkdir(0o755)
        closed.chmod(0o555)
        other = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        ran = done(*other, script, "check", closed / "local", code=1)
        for words in (f"may not write to {closed}", "make install PREFIX=$HOME/.local", "sudo"):
            if words not in ran.err:
                raise Problem(f"no word of {words!r}{harness.output(ran.err)}")


def debian_package(_world):
    for tool in ("dpkg", "dpkg-deb", "objdump"):
        if not shutil.which(tool):
            raise Skip(f"there is no {tool}")
    made = done("make", "--no-print-directory", "deb", seconds=LONG_SECONDS, cwd=harness.ROOT)
    package = harness.ROOT / made.out.splitlines()[-1]
    with scratch() as name:
        root = Path(name) / "root"
        # What each system has, another MPI with the names of our alternatives among it.
        for folder in ("var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/dpkg/alternatives", "var/log", "etc/alternatives", "usr/bin"):
            (root / folder).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        with_sbin = {"PATH": f"/usr/sbin:/sbin:{os.environ['PATH']}"}
        dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-script-chrootless", "--log=/dev/null"]
        before = contents(root)
        done(*dpkg, "--install", package, env=with_sbin)
        runs(root / "opt/fishplate", Path(name))
        for command in ("fishplate", "mpicc", "mpicxx", "mpic++", "mpifort", "mpif90", "mpif77", "mpiexec", "mpirun"):
            if (leads := led(root, f"usr/bin/{command}")) != f"opt/fishplate/bin/{command}":
                raise Problem(f"/usr/bin/{command} leads to {leads}")
        share = root / "usr/share"
        for part in ("man/man1/fishplate.1.gz", "doc/fishplate/README.md", "doc/fishplate/examples/heat.c", "doc/fishplate/docs/user/faq.md",
                     "bash-completion/completions/fishplate", "modules/modulefiles/mpi/fishplate"):
            if not (share / part).is_file():
                raise Problem(f"there is no /usr/share/{part}")
        for part in ("man/man1/mpiexec.1.gz", "bash-completion/completions/mpirun", "zsh/vendor-completions/_mpiexec"):
            if not (share / part).is_symlink() or not (root / led(root, f"usr/share/{part}")).is_file():
                raise Problem(f"/usr/share/{part} is no alternative")
        kept = done("nm", "--defined-only", root / "opt/fishplate/bin/fishplate").out.split()[2::3]
        if "MPIR_proctable" not in kept or not all(name.startswith("MPIR_") or name == "main" for name in kept):
            raise Problem(f"debuggers need symbols of MPIR and no others, and bin/fishplate has {kept[:20]}")
        for binary in ("lib/libmpi_abi.so.1", "lib/libmpifort_abi.so.1", "lib/libfishplate_clock.so", "lib/libfishplate_record.so", "lib/libfishplate_record_large.so",
                       "lib/fishplate/libmpi.so.12", "lib/fishplate/libmpi.so.40",
                       "lib/fishplate/libmpifort.so.12", "lib/fishplate/libmpi_mpifh.so.40"):
            if "no symbols" not in done("objdump", "-t", root / "opt/fishplate" / binary).out:
                raise Problem(f"{binary} is not stripped")
        another_is_preferred(root, with_sbin)
        done(*dpkg, "--remove", "fishplate", env=with_sbin)
        left = {path for path in contents(root) - before if not path.startswith("var") and not path.endswith("another")}
        if left:
            raise Problem(f"left behind: {sorted(left)}")


def led(root: Path, path: str) -> str:
    """The place to which a chain of links of the system leads, within a root."""
    while not path.startswith("opt/") and (root / path).is_symlink():
        path = os.readlink(root / path).lstrip("/")
    return path


def another_is_preferred(root: Path, environment: dict):
    """An MPI of the distribution keeps its names, and ours take them when it goes."""
    another = root / "usr/bin/mpirun.another"
    another.write_text("")
    environment = environment | {"DPKG_ROOT": str(root)}
    alternatives = ["update-alternatives"]
    done(*alternatives, "--install", "/usr/bin/mpirun", "mpirun", "/usr/bin/mpirun.another", 50, env=environment)
    if led(root, "usr/bin/mpirun") != "usr/bin/mpirun.another" or (root / "usr/share/man/man1/mpiexec.1.gz").exists():
        raise Problem("an MPI of the distribution does not keep its names")
    done(*alternatives, "--remove", "mpirun", "/usr/bin/mpirun.another", env=environment)
    if led(root, "usr/bin/mpirun") != "opt/fishplate/bin/mpirun":
        raise Problem("nothing has the name mpirun when the other MPI is gone")
    another.unlink()


def fresh_debian(_world) -> str:
    made = done("make", "--no-print-directory", "deb", seconds=LONG_SECONDS, cwd=harness.ROOT)
    try:
        return fresh.a_fresh_debian(harness.ROOT / made.out.splitlines()[-1])
    except Skip as why:
        harness.not_run("a fresh Debian", str(why))
        raise


CASES = [
    Case("make install and make uninstall", installed_and_removed),
    Case("files of others stay", others_stay),
    Case("a folder without permission", no_permission),
    Case("a Debian package in a root of its own", debian_package),
    *wheel.CASES,
    Case("a fresh Debian", fresh_debian),
    *image.CASES,
    *emulated.CASES,
    *version.CASES,
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_case_options(parser)
    options = parser.parse_args()
    cases = [case for case in CASES if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    return harness.run_suite("packages", cases)


if __name__ == "__main__":
    sys.exit(main())
