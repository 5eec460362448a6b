"""`make container`: an image on a fresh Debian, and jobs in it, as its users start them."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import fresh
import harness
from fresh import LONG_SECONDS, done
from harness import Case, Problem, Skip

TOOLS = ("podman", "docker")
BASE, IMAGE = "localhost/fishplate-base", "fishplate"
# For machines in which a container may not raise its limits, and whose control groups have both versions.
MODEST = '[engine]\nruntime = "runc"\n[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n'


def succeeds(*words) -> bool:
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def tool() -> str:
    for name in TOOLS:
        if shutil.which(name) and succeeds(name, "info"):
            return name
    raise Skip("neither podman nor docker runs here")


def settings(engine: str, work: Path) -> dict:
    """Variables with which a container of the base runs here."""
    modest = work / "containers.conf"
    modest.write_text(MODEST)
    for variables in ({}, {"CONTAINERS_CONF": str(modest)}):
        ran = harness.run([engine, "run", "--rm", BASE, "true"], seconds=fresh.SECONDS, env=variables)
        if ran.code == 0:
            return variables
    raise Skip(f"{engine} runs no container here: {' '.join(ran.err.split()[-20:])}")


def container(_world) -> str:
    try:
        engine = tool()
        archive = fresh.base()
        # On the disk: `podman import` keeps a copy of the archive in the temporary folder.
        done(engine, "import", archive, BASE, env={"TMPDIR": str(fresh.HOME)})
        with tempfile.TemporaryDirectory(prefix="fishplate-image-") as name:
            work = Path(name)
            variables = settings(engine, work)
            return runs(engine, work, variables)
    except Skip as why:
        harness.not_run("container", str(why))
        raise


def runs(engine: str, work: Path, variables: dict) -> str:
    done("make", "--no-print-directory", "container", f"BASE={BASE}", seconds=LONG_SECONDS, cwd=harness.ROOT, env=variables)
    try:
        shutil.copy(harness.ROOT / "examples/heat.c", work)

        def inside(*words):
            return done(engine, "run", "--rm", "-v", f"{work}:/work", IMAGE, *words, env=variables)

        inside("mpicc", "-O2", "heat.c", "-o", "heat", "-lm")
        ran = inside("mpiexec", "-n", 4, "./heat", "256", "100")
        # One line, by rank 0 of one job.
        if ran.out.count("256 x 256 points") != 1:
            raise Problem(f"a job of 4 ranks in the image says{harness.output(ran.out + ran.err)}")
        answer = inside("fishplate", "compare", "--quick", "--fabrics", "qdr,edr", "-n", 8, "./heat", "256", "100").out
        if "qdr" not in answer or "edr" not in answer:
            raise Problem(f"no answer{harness.output(answer)}")
        size = subprocess.run([engine, "image", "inspect", "--format", "{{.Size}}", IMAGE], capture_output=True, text=True).stdout
        return f"the image has {int(size) / 1e6:.0f} MB with its base"
    finally:
        done(engine, "rmi", "--force", IMAGE, env=variables)


CASES = [Case("a container image", container)]
