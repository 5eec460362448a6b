"""Parts of the suites of others on modelled machines: mpi4py's modules and MPICH's programs."""

import re
import sys
import tempfile
from pathlib import Path

import harness
from harness import Problem

HERE = Path(__file__).resolve().parent
# Programs of MPICH that end otherwise here than in real time: why one fails, or None for one that passes.
MPICH_HERE = {
    "pt2pt/bsendpending": "reads the clock until it has moved, which stands still where computing takes no time",
    "pt2pt/scancel_unmatch": None,
}


def expected(work: str, further: dict) -> Path:
    """A file with the expected failures of MPICH's programs on modelled machines."""
    here = MPICH_HERE | further
    lines = (HERE / "mpich" / "mpich.expected").read_text().splitlines()
    lines = [line for line in lines if line.split()[0] not in here]
    lines += [f"{program}  *  {why}" for program, why in here.items() if why]
    file = Path(work) / "mpich.expected"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def part(suite: str, words: list, results: str, machine: str, env: dict, seconds: float, further: dict = {}):
    """A test that runs a part of a suite of others on a modelled machine. It must have no failure but the expected ones, and for MPICH's programs those that `further` names."""
    def test(prefix: Path) -> str:
        with tempfile.TemporaryDirectory(prefix=f"fishplate-{results}-") as work:
            command = [sys.executable, HERE / suite / "run.py", "--prefix", prefix, "--results", f"{results}-{suite}",
                       "--mpiexec-options", f"{machine} --summary none", *words]
            if suite == "mpich":
                command += ["--expected", expected(work, further)]
            ran = harness.run(list(map(str, command)), seconds=seconds, env=env)
        if ran.code == harness.NOT_RUN:
            raise harness.Skip(" ".join(ran.out.split()))
        counts = re.search(r"^(\d+) passed, 0 failed, \d+ skipped\n\Z", ran.out, re.MULTILINE)
        if ran.code != 0 or not counts or counts[1] == "0":
            raise Problem(f"exit status {ran.code}:\n{ran.out[-3000:]}{ran.err[-1000:]}")
        return counts[0].strip()
    return test
