"""The commit in `fishplate --version`: from a clone, a work tree beside it, an archive of the sources, and a folder without any of these."""

import subprocess
import tempfile
from pathlib import Path

import harness
from harness import Case, Problem

CRATE = "crates/command/fishplate"


def named(script: Path, root: Path, **variables: str) -> str:
    """The version that the build script writes for the sources in a folder."""
    environment = {"CARGO_MANIFEST_DIR": str(root / CRATE), "CARGO_PKG_VERSION": "1.2.3", **variables}
    ran = harness.run([str(script)], seconds=30, env=environment, cwd=root / CRATE)
    lines = [line.partition("VERSION_AND_COMMIT=")[2] for line in ran.out.splitlines() if "VERSION_AND_COMMIT=" in line]
    if ran.code or len(lines) != 1:
        raise Problem(f"the build script ended with {ran.code}{harness.output(ran.out + ran.err)}")
    return lines[0]


def commit_of_each_kind(_world):
    def git(folder: Path, *words) -> str:
        return subprocess.run(["git", "-C", folder, *map(str, words)], check=True, capture_output=True, text=True).stdout.strip()

    def expect(what: str, seen: str, wanted: str) -> None:
        if seen != wanted:
            raise Problem(f"{what}: {seen!r}, not {wanted!r}")

    with tempfile.TemporaryDirectory(prefix="fishplate-version-") as name:
        work = Path(name)
        script, sources = work / "script", work / "sources"
        subprocess.run(["rustc", "--edition=2024", harness.ROOT / CRATE / "build.rs", "-o", script], check=True)
        (sources / CRATE).mkdir(parents=True)
        for file in (".gitattributes", f"{CRATE}/commit"):
            (sources / file).write_bytes((harness.ROOT / file).read_bytes())
        expect("no repository", named(script, sources), "1.2.3, commit not known")
        git(sources, "init", "-q")
        expect("no commit", named(script, sources), "1.2.3, commit not known")
        git(sources, "add", ".")
        git(sources, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first", "--date=2001-02-03T12:00:00")
        wanted = git(sources, "log", "-1", "--abbrev=10", "--format=1.2.3, commit %h of %cs")
        expect("a clone", named(script, sources), wanted)
        git(sources, "worktree", "add", "-q", work / "beside")
        expect("a work tree", named(script, work / "beside"), wanted)
        archive = subprocess.run(["git", "-C", sources, "archive", "HEAD"], check=True, capture_output=True).stdout
        # Within the repository of something else, as packages are made.
        unpacked = sources / "packaging/fishplate"
        unpacked.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", unpacked], check=True, input=archive)
        expect("an archive", named(script, unpacked), wanted)
        (unpacked / CRATE / "commit").unlink()
        expect("an archive by other means", named(script, unpacked), "1.2.3, commit not known")
        expect("a variable", named(script, unpacked, SOURCE_COMMIT="0123456789abcdef 2001-02-03"), "1.2.3, commit 0123456789 of 2001-02-03")
        expect("no git", named(script, sources, PATH="/nowhere"), "1.2.3, commit not known")


CASES = [Case("the commit in the version", commit_of_each_kind)]
