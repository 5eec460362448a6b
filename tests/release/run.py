#!/usr/bin/env python3
"""Checks what a release consists of: its version in all files, its changes, recipes, citation and workflow.

    tests/release/run.py [--prefix build] [--short] [--only TEXT] [--list] [--tag TAG] [--notes TAG]

`--tag` checks that a tag names the version of Cargo.toml, and `--notes` prints the changes of a tag's version alone. Cases that fetch checkers (cffconvert and rattler-build
of PyPI, actionlint by Go) or install by a recipe are left out with `--short`. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
import spack_stand_in  # noqa: E402
import versions  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402

ROOT = harness.ROOT
WORKFLOWS = ROOT / ".github/workflows"
CONDA, SPACK, CITATION = ROOT / "packaging/conda/recipe.yaml", ROOT / "packaging/spack/package.py", ROOT / "CITATION.cff"
# Checkers, in an environment of their own.
TOOLS, CHECKERS = ROOT / "build/release-tools", ("cffconvert==2.0.0", "setuptools==80.9.0", "py-rattler-build==0.73.0")
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
SECONDS, LONG_SECONDS = 300, 3000
# Where the version stands in a file, with one group.
PLACES = {
    "CITATION.cff": r"^version: (.+)$",
    "packaging/conda/recipe.yaml": r"^  version: (.+)$",
    "packaging/spack/package.py": r'version\("([^"]+)", tag=',
    "CHANGELOG.md": r"^## (\S+) \(",
    "README.md": r"\*\*State\*\*: version ([\d.]+\d)",
    "docs/user/faq.md": r"`Fishplate ([\d.]+), MPI",
}


def done(*words, seconds=SECONDS, **how) -> str:
    ran = harness.run([str(word) for word in words], seconds=seconds, **how)
    if ran.code != 0:
        raise Problem(f"`{' '.join(map(str, words))}` ended with {ran.code}{harness.output(ran.out + ran.err)}")
    return ran.out


def one_version(_world) -> str:
    found = {name: re.search(pattern, (ROOT / name).read_text(), re.M) for name, pattern in PLACES.items()}
    wrong = [f"{name}: {match[1] if match else 'no version'}" for name, match in found.items() if not match or match[1] != versions.OURS]
    if f'"v{versions.OURS}"' not in SPACK.read_text():
        wrong.append("packaging/spack/package.py: the tag")
    if wrong:
        raise Problem(f"Cargo.toml has {versions.OURS}" + harness.output("\n".join(wrong)))
    return versions.OURS


def one_date(_world) -> str:
    changes = re.search(r"^## \S+ \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    cited = re.search(r"^date-released: (.+)$", CITATION.read_text(), re.M)
    if not changes or not cited or changes[1] != cited[1]:
        raise Problem(f"CHANGELOG.md: {changes and changes[1]}; CITATION.cff: {cited and cited[1]}")
    return cited[1]


def lock_file(_world) -> None:
    locked = re.findall(r'^name = "(\S+)"\nversion = "(\S+)"\n(?!source)', (ROOT / "Cargo.lock").read_text(), re.M)
    wrong = [name for name, version in locked if version != versions.OURS]
    if wrong or not locked:
        raise Problem(f"Cargo.lock has other versions of {', '.join(wrong)}: run cargo check")


def notes(version: str) -> str:
    """The section of CHANGELOG.md about a version, without its head. Links of the text lead into the repository."""
    found = re.search(rf"^## {re.escape(version)} .*?\n(.*?)(?=^## )", (ROOT / "CHANGELOG.md").read_text() + "## ", re.M | re.S)
    if not found:
        sys.exit(f"tests/release/run.py: CHANGELOG.md has no section about {version}")
    return found[1].strip()


def makes(workflow: Path) -> list[tuple[list, dict]]:
    """Targets and variables of each `make` in a workflow."""
    found = []
    for words in re.findall(r"\bmake ((?:[\w.-]+(?:=\S+)?[ \n])+)", workflow.read_text()):
        words = words.split()
        found.append(([word for word in words if "=" not in word], dict(word.split("=") for word in words if "=" in word)))
    return found


def database() -> str:
    """The targets and variables of make."""
    return subprocess.run(["make", "-pRrq", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=False, env=without_make()).stdout


def without_make() -> dict:
    return {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def targets_exist(_world) -> str:
    known = set(re.findall(r"^([\w.-]+):(?!=)", re.sub(r"^# Not a target:\n.*$", "", database(), flags=re.M), re.M))
    named = {(workflow.name, target) for workflow in WORKFLOWS.glob("*.yml") for targets, _ in makes(workflow) for target in targets}
    if missing := [f"{name}: make {target}" for name, target in sorted(named) if target not in known]:
        raise Problem("no such targets" + harness.output("\n".join(missing)))
    asked = {target for name, target in named if name == "release.yml"}
    if lacking := {"wheel", "test-wheel", "deb", "container", "site", "test-ci"} - asked:
        raise Problem(f"release.yml makes no {', '.join(sorted(lacking))}")
    return f"{len(named)} targets"


def files_are_attached(_world) -> str:
    """The patterns of the workflow name the files that make makes."""
    patterns = re.findall(r"^ +(build/\S+\*\S+)$", (WORKFLOWS / "release.yml").read_text(), re.M)
    made = []
    for machine in ("x86_64", "aarch64"):
        for variable in ("WHEEL", "DEB"):
            words = ["make", "-s", "--no-print-directory", "--eval", f"shown: ; @echo $({variable})", "shown", f"MACHINE={machine}"]
            made.append(done(*words, cwd=ROOT, env=without_make()).strip())
    unattached = [name for name in made if not any(Path(name).match(pattern) for pattern in patterns)]
    if unattached or len(set(made)) != len(made):
        raise Problem(f"not attached, or two of one name: {', '.join(unattached or made)}")
    return ", ".join(Path(name).name for name in made)


def spack_recipe(_world) -> str:
    recipe = spack_stand_in.load(SPACK)
    wanted = {"provides": "mpi@:5.0", "depends_on": "rust@1.88:", "license": "MIT OR Apache-2.0"}
    if wrong := [f"{name}({value!r})" for name, value in wanted.items() if value not in recipe.said(name)]:
        raise Problem(f"the recipe lacks {', '.join(wrong)}")
    rust = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    if f"rust@{rust}:" not in recipe.said("depends_on"):
        raise Problem(f"Cargo.toml asks for Rust {rust}")
    printed = done(ROOT / "build/bin/fishplate", "--version")
    if (seen := recipe.package.determine_version(str(ROOT / "build/bin/fishplate"))) != versions.OURS:
        raise Problem(f"the recipe reads {seen} from {printed}")
    link = ROOT / "packaging/spack/packages/fishplate/package.py"
    if link.resolve() != SPACK:
        raise Problem(f"{link} is no link to the recipe")
    return ""


def spack_installs(_world) -> str:
    """The recipe's own commands, and a program that is built as Spack builds a dependent package."""
    with tempfile.TemporaryDirectory(prefix="fishplate-release-") as folder:
        recipe = spack_stand_in.load(SPACK)
        installed = recipe.installed(ROOT, Path(folder), fortran=shutil.which("gfortran") is not None)
        environment = installed.dependent_environment(CC=shutil.which("cc"), CXX=shutil.which("c++"), FC=shutil.which("gfortran"))
        program = Path(folder) / "pi"
        done(installed.spec.mpicc, "-O2", ROOT / "examples/pi.c", "-o", program, "-lm", env=environment)
        done(Path(folder) / "prefix/bin/mpiexec", "-n", 2, program)
        for wrapper in (name for name in environment if name in ("MPICXX", "MPIFC", "MPIF90", "MPIF77")):
            done(environment[wrapper], "-show", env=environment)
        if not installed.package.libs or not installed.package.headers:
            raise Problem(f"libs {installed.package.libs}, headers {installed.package.headers}")
        return f"with {', '.join(sorted(environment))}"


def tool(name: str) -> Path:
    if not (TOOLS / "kept").exists() or (TOOLS / "kept").read_text() != " ".join(CHECKERS):
        shutil.rmtree(TOOLS, ignore_errors=True)
        done(sys.executable, "-m", "venv", TOOLS)
        done(TOOLS / "bin/pip", "install", "-q", "--disable-pip-version-check", *CHECKERS)
        (TOOLS / "kept").write_text(" ".join(CHECKERS))
    return TOOLS / "bin" / name


def citation(_world) -> None:
    done(tool("cffconvert"), "--validate", "-i", CITATION)
    bibtex = done(tool("cffconvert"), "-f", "bibtex", "-i", CITATION)
    if "Fishplate" not in bibtex:
        raise Problem(f"as BibTeX it is{harness.output(bibtex)}")


def conda_recipe(_world) -> str:
    """rattler-build reads the recipe for both processors."""
    printed = done(tool("python"), HERE / "rendered.py", CONDA)
    lines = printed.splitlines()
    if [line.split(":")[0] for line in lines] != ["linux-64", "linux-aarch64"]:
        raise Problem(f"rendered are{harness.output(printed)}")
    return "; ".join(lines)


def conda_installs(_world) -> str:
    """The recipe's script, but for the licences of crates, in a folder as an environment; then the recipe's own test."""
    text = CONDA.read_text()
    home = re.search(r"^  home: (.+)$", text, re.M)[1]
    script, tests = scripts(text)
    with tempfile.TemporaryDirectory(prefix="fishplate-release-") as folder:
        environment = {"PREFIX": folder, "SRC_DIR": str(ROOT), "CARGO_HOME": os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))}
        own = [line for line in script if not line.startswith(("cargo-bundle-licenses", "export CARGO_HOME"))]
        done("bash", "-ec", "\n".join(own).replace("${{ home }}", home), cwd=ROOT, env=environment, seconds=LONG_SECONDS)
        wanted = [name.replace("${{ home }}", home) for name in re.findall(r"^        - (\S.*)$", text.split("files:")[1].split("- script:")[0], re.M)]
        if missing := [name for name in wanted if not (Path(folder) / name).exists()] or not wanted:
            raise Problem(f"not installed: {missing}")
        for line in tests:
            done("bash", "-ec", line, env={"PATH": f"{folder}/bin:/usr/bin:/bin"}, cwd=folder)
    return f"{len(wanted)} files, {len(tests)} commands"


def scripts(text: str) -> list[list[str]]:
    """The lists of commands of the recipe: that of the build and that of the test."""
    return [re.findall(r"^ +- (.*)$", block, re.M) for block in re.findall(r"script:\n((?: {4,}- .*\n)+)", text)]


def workflows(_world) -> str:
    if not shutil.which("go"):
        raise Skip("no Go here, which fetches actionlint")
    return done("go", "run", ACTIONLINT, cwd=ROOT) or f"{len(list(WORKFLOWS.glob('*.yml')))} workflows"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--short", action="store_true", help="without cases that fetch checkers or install")
    parser.add_argument("--tag", help="the tag names this version")
    parser.add_argument("--notes", metavar="TAG", help="print the changes of this tag's version, and stop")
    options = parser.parse_args()
    if options.notes:
        print(notes(options.notes.removeprefix("v")))
        return 0
    if options.tag and options.tag != f"v{versions.OURS}":
        sys.exit(f"tests/release/run.py: the tag {options.tag} is not v{versions.OURS}, the version of Cargo.toml: mend the version, or move the tag")
    cases = [Case("all files have the version of Cargo.toml", one_version), Case("the date of the changes is that of the citation", one_date),
             Case("Cargo.lock has the version", lock_file), Case("workflows make targets that exist", targets_exist),
             Case("the workflow attaches the packages", files_are_attached), Case("CITATION.cff is valid", citation, short=False),
             Case("the recipe for Spack", spack_recipe, short=False), Case("the recipe for Spack installs", spack_installs, short=False),
             Case("the recipe for conda", conda_recipe, short=False), Case("the recipe for conda installs", conda_installs, short=False),
             Case("actionlint", workflows, short=False)]
    cases = [case for case in cases if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    return harness.run_suite("release-files", cases)


if __name__ == "__main__":
    sys.exit(main())
