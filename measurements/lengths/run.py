#!/usr/bin/env python3
"""Compares the predicted time of a long run with that of the long run itself, on every machine.

Each program is recorded short, `fishplate compare --iterations` predicts the long run, and the long run is recorded and compared too, in turn.
Both are recordings of this computer, so the difference holds its noise: medians of pairs are compared, and the column of pairs shows the least
and the greatest difference of one. On a computer that is busy with other things the two differ more than any prediction: with --cut the
short run is not recorded but cut from the trace of the long one, so that the difference is that of the prediction alone. With
--starts, instead: the speed-up of the loop of heat on two rails over one, by runs of different lengths, which is 1.

Limits: 2 % for predictions, because a comparison calls machines equal within 2 %; 0.5 % for speed-ups, which are exact but for the path
that a first message takes."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MACHINES = "qdr,2xqdr,fdr,edr"
# The steps of an iteration of each program: wave has an MPI_Allreduce every ten steps.
PROGRAMS = {"heat": 1, "wave": 10, "sums": 1}
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


def predicted(found: dict, iterations: int) -> list:
    """Seconds of the long run on each machine, by a comparison of the short one.

    Iterations of the short run that the loop does not have (before it and behind it) are part of its rest."""
    extra = iterations - found["recordings"][0]["loop"].get("iterations", 0)
    return [row["deciding_seconds"] - extra * (row["iteration_seconds"] or 0) for row in found["rows"]]


def predictions(prefix: Path, programs: dict, short: int, long: int, pairs: int) -> bool:
    print(f"{'program':8} {'machine':8} {'predicted':>12} {'direct':>12} {'off':>7} {'pairs':>16}   {long} steps from {short}, {pairs} pairs")
    kept = True
    for name, words in programs.items():
        short_runs, long_runs, refused = [], [], 0
        wanted = long // PROGRAMS[name]
        while len(short_runs) < pairs and refused <= pairs:
            found = compared(prefix, MACHINES, 8, [*words, short], "--quick", "--iterations", wanted)
            if found["decides"] != {"iterations": wanted}:
                # The first and the last third of this recording differ.
                refused += 1
                continue
            short_runs.append(predicted(found, short // PROGRAMS[name]))
            direct = compared(prefix, MACHINES, 8, [*words, long], "--quick")
            long_runs.append([row["seconds"] for row in direct["rows"]])
        if refused:
            print(f"{name:8} {refused} recordings without a prediction, left out")
        if not short_runs:
            kept = False
            continue
        for place, machine in enumerate(MACHINES.split(",")):
            one, other = [run[place] for run in short_runs], [run[place] for run in long_runs]
            offs = [a / b - 1 for a, b in zip(one, other)]
            off = median(one) / median(other) - 1
            kept &= abs(off) <= PREDICTED
            print(f"{name:8} {machine:8} {median(one) * 1e3:9.3f} ms {median(other) * 1e3:9.3f} ms {off:+7.1%} {min(offs):+7.1%}..{max(offs):+6.1%}"
                  f"{'' if abs(off) <= PREDICTED else '   missed'}", flush=True)
    return kept


def cut_predictions(prefix: Path, work: Path, programs: dict, short: int, long: int, count: int) -> bool:
    """Compares predictions from the first iterations of traces with the whole traces."""
    print(f"{'program':8} {'machine':8} {'predicted':>12} {'direct':>12} {'off':>7}   {long} steps from their first {short}")
    kept = True
    for name, words in programs.items():
        whole, part = work / "whole.trace", work / "part.trace"
        for _ in range(count):
            compared(prefix, "qdr", 8, [*words, long], "--recordings", 1, "--record", whole)
            direct = compared(prefix, MACHINES, 8, [whole])
            all_iterations = direct["recordings"][0]["loop"]["iterations"]
            few = short // PROGRAMS[name]
            command = [prefix / "bin/fishplate", "trace", "cut", whole, "--iterations", f"0:{few}", "--output", part]
            subprocess.run(list(map(str, command)), check=True, capture_output=True)
            found = compared(prefix, MACHINES, 8, [part], "--iterations", all_iterations)
            if found["decides"] != {"iterations": all_iterations}:
                # The first and the last third of the part differ.
                print(f"{name:8} has no prediction")
                continue
            for one, other in zip(found["rows"], direct["rows"]):
                off = one["deciding_seconds"] / other["seconds"] - 1
                kept &= abs(off) <= PREDICTED
                print(f"{name:8} {other['machine']:8} {one['deciding_seconds'] * 1e3:9.3f} ms {other['seconds'] * 1e3:9.3f} ms {off:+7.2%}"
                      f"{'' if abs(off) <= PREDICTED else '   missed'}", flush=True)
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
    parser.add_argument("--pairs", type=int, default=5, metavar="COUNT", help="short and long runs of each program")
    parser.add_argument("--cut", action="store_true", help="short runs that are cut from the traces of the long ones")
    parser.add_argument("--starts", action="store_true", help="the speed-up of the loop by runs of different lengths")
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    with tempfile.TemporaryDirectory(prefix="lengths-") as work:
        programs = built(prefix, Path(work))
        if options.starts:
            return 0 if starts(prefix, programs) else 1
        chosen = {name: words for name, words in programs.items() if options.only in (None, name)}
        if options.cut:
            return 0 if cut_predictions(prefix, Path(work), chosen, options.short, options.long, options.pairs) else 1
        return 0 if predictions(prefix, chosen, options.short, options.long, options.pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
