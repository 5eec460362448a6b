#!/usr/bin/env python3
"""Installs Fishplate as users do, and removes it: `make install`, `make uninstall`, a Debian package, a container image.

    tests/packages/run.py [--only TEXT] [--list]

Needs `make stage`. What this machine has no tools for is not run, and said so. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402

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
    done(prefix / "bin/mpicc", harness.ROOT / "tests/c/hello.c", "-I", harness.ROOT / "tests/c", "-o", program, env=environment)
    ran = done(prefix / "bin/mpiexec", "-n", 2, program, env=environment)
    mapped = done("ldd", program).out
    if str(prefix / "lib/libmpi_abi.so.1") not in mapped:
        raise Problem(f"the program is linked with another library{harness.output(mapped)}")
    return ran


def scratch():
    return tempfile.TemporaryDirectory(prefix="fishplate-packages-")


def installed_and_removed(_world):
    with scratch() as name:
        work = Path(name)
        prefix = work / "new/prefix"
        words = ["make", "--no-print-directory", f"PREFIX={prefix}"]
        ran = done(*words, "install", seconds=LONG_SECONDS, cwd=harness.ROOT)
        if f"export PATH={prefix}/bin:$PATH" not in ran.out:
            raise Problem(f"the installation does not say what next{harness.output(ran.out)}")
        runs(prefix, work)
        for part in ("share/man/man1/fishplate.1", "share/man/man1/fishplate-bench-latency.1", "share/man/man1/mpiexec.1",
                     "share/bash-completion/completions/mpiexec", "share/zsh/site-functions/_fishplate",
                     "share/fish/vendor_completions.d/fishplate.fish", "share/doc/fishplate/LICENSE-MIT"):
            if not (prefix / part).stat().st_size:
                raise Problem(f"{part} is empty")
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
        for folder in ("updates", "info"):
            (root / "var/lib/dpkg" / folder).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--log=/dev/null"]
        done(*dpkg, "--install", package, env={"PATH": f"/usr/sbin:/sbin:{os.environ['PATH']}"})
        runs(root / "opt/fishplate", Path(name))
        if os.readlink(root / "usr/bin/fishplate") != "/opt/fishplate/bin/fishplate":
            raise Problem("/usr/bin/fishplate leads elsewhere")
        done(*dpkg, "--remove", "fishplate", env={"PATH": f"/usr/sbin:/sbin:{os.environ['PATH']}"})
        left = {path for path in contents(root) if not path.startswith("var")}
        if left:
            raise Problem(f"left behind: {sorted(left)}")


def container(_world):
    tools = [tool for tool in ("podman", "docker") if shutil.which(tool)
             and subprocess.run([tool, "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0]
    if not tools:
        harness.not_run("container", "neither podman nor docker runs here")
        raise Skip("neither podman nor docker runs here")
    done("make", "--no-print-directory", "container", seconds=LONG_SECONDS, cwd=harness.ROOT)
    done(tools[0], "run", "--rm", "fishplate", "mpiexec", "-n", 2, "true")


CASES = [
    Case("make install and make uninstall", installed_and_removed),
    Case("files of others stay", others_stay),
    Case("a folder without permission", no_permission),
    Case("a Debian package in a root of its own", debian_package),
    Case("a container image", container),
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
