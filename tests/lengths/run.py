#!/usr/bin/env python3
"""Compares the predicted time of a long run with that of the long run itself, on every machine.

Each program is recorded short, `fishplate compare --iterations` predicts the long run, and the long run is recorded and compared too. Both are
recordings of this computer, so the difference holds its noise: the machine must be otherwise idle. With --starts, instead: the speed-up of
the loop of heat on two rails over one, by runs of different lengths, which is 1.

Limits: 2 % for predictions, because a comparison calls machines equal within 2 %; 0.5 % for speed-ups, which are exact but for the path
that a first message takes."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MACHINES = "qdr,2xqdr,fdr,edr"
# Name, ranks, words of the program for a number of steps, steps of the short and of the long run.
PROGRAMS = ("heat", "wave", "sums")
PREDICTED, STARTED = 0.02, 0.005


def built(prefix: Path, work: Path) -> dict:
    """The words of each program, before its number of steps."""
    mpicc = prefix / "bin/mpicc"
    subprocess.run([mpicc, "-O2", ROOT / "examples/heat.c", "-o", work / "heat", "-lm"], check=True)
    subprocess.run([mpicc, "-O2", "-fopenmp", HERE / "wave.c", "-o", work / "wave"], check=True)
    python = work / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", work / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "mpi4py"], check=True)
    return {"heat": [work / "heat", 256], "wave": [work / "wave", 20000], "sums": [python, HERE / "sums.py"]}


def compared(prefix: Path, machines: str, ranks: int, words: list, *options) -> dict:
    command = [prefix / "bin/fishplate", "compare", "-q", "--fabrics", machines, "-n", ranks, "--json", *options, *words]
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {ran.stderr[-1000:]}")
    return json.loads(ran.stdout)


def predictions(prefix: Path, programs: dict, short: int, long: int) -> bool:
    print(f"{'program':8} {'machine':8} {'predicted':>12} {'direct':>12} {'off':>7}   {long} steps from {short}")
    kept = True
    for name, words in programs.items():
        # All runs of a program pass the same words but the last, which the recordings check.
        found = compared(prefix, MACHINES, 8, [*words, short], "--iterations", long)
        direct = compared(prefix, MACHINES, 8, [*words, long])
        for one, other in zip(found["rows"], direct["rows"]):
            # Iterations of the short run that the loop does not have (before it and behind it) are part of its rest.
            extra = short - found["recordings"][0]["loop"].get("iterations", 0)
            seconds = one["deciding_seconds"] - extra * (one["iteration_seconds"] or 0)
            off = seconds / other["seconds"] - 1
            fits = found["decides"] == {"iterations": long} and abs(off) <= PREDICTED
            kept &= fits
            print(f"{name:8} {one['machine']:8} {seconds * 1e3:9.3f} ms {other['seconds'] * 1e3:9.3f} ms {off:+7.1%}{'' if fits else '   missed'}"
                  f"{'' if one['no_prediction'] is None else '   ' + one['no_prediction']}")
    return kept


def starts(prefix: Path, programs: dict) -> bool:
    kept = True
    for steps in (20, 100, 2000):
        found = compared(prefix, "qdr,2xqdr", 16, [*programs["heat"], steps])
        advice, speed_up = found["advice"], found["rows"][1]["speed_up"]
        kept &= abs(speed_up - 1) <= STARTED
        bounds = [row["bound"] for row in found["rows"]]
        print(f"{steps:5} steps: speed-up of 2xqdr {speed_up:.4f}, bounds {bounds}, best {advice['best']}, {advice['certainty']}")
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=ROOT / "build", help="the installed tree")
    parser.add_argument("--only", choices=PROGRAMS, help="one program")
    parser.add_argument("--short", type=int, default=100, metavar="STEPS", help="steps of the short run")
    parser.add_argument("--long", type=int, default=2000, metavar="STEPS", help="steps of the long run")
    parser.add_argument("--starts", action="store_true", help="the speed-up of the loop by runs of different lengths")
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    with tempfile.TemporaryDirectory(prefix="lengths-") as work:
        programs = built(prefix, Path(work))
        if options.starts:
            return 0 if starts(prefix, programs) else 1
        chosen = {name: words for name, words in programs.items() if options.only in (None, name)}
        return 0 if predictions(prefix, chosen, options.short, options.long) else 1


if __name__ == "__main__":
    sys.exit(main())
