#!/usr/bin/env python3
"""Compares the predicted time of a long run with that of the long run itself, on every machine.

Each program is recorded short, `fishplate compare --iterations` predicts the long run, and the long run is recorded and compared too, in turn.
Both are recordings of this computer, so the difference holds its noise: medians of pairs are compared, and the column of pairs shows the least
and the greatest difference of one. On a computer that is busy with other things the two differ more than any prediction: with --grown the
long run is not recorded but made of the iterations of the short recording, so that the difference is that of the prediction alone. With
--starts, instead: the speed-up of the loop of heat on two rails over one, by runs of different lengths, which is 1.

Limits: 2 % for predictions, because a comparison calls machines equal within 2 %; 0.5 % for speed-ups, which are exact but for the path
that a first message takes."""

import argparse
import json
import re
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
# The call that ends an iteration of each of them, and how often an iteration has it: mpi4py sends length and contents of a sum.
LAST_CALLS = {"heat": ("MPI_Allreduce", 1), "wave": ("MPI_Allreduce", 1), "sums": ("MPI_Bcast_c", 2)}
# The iterations at both ends of a recording that a grown one has once.
ENDS = 2
# Recordings until one of them has a prediction.
TRIES = 6
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


def grown(name: str, recordings: str, words: list, iterations: int) -> str:
    """Recordings of the program `words` with so many iterations, each by those of a short one in turn."""
    *all_recordings, remarks = recordings.split("end\n")
    return "".join(grown_one(name, one, words, iterations) + "end\n" for one in all_recordings) + remarks


def grown_one(name: str, recording: str, words: list, iterations: int) -> str:
    last, times = LAST_CALLS[name]
    head, *ranks = re.split(r"^rank \d+ calls \d+\n", recording, flags=re.MULTILINE)
    text = re.sub("^program .*$", f"program {' '.join(map(str, words))}", head, flags=re.MULTILINE)
    for rank, lines in enumerate(ranks):
        parts = re.findall(rf"(?:(?:(?!{last} ).*\n)*{last} .*\n){{{times}}}", lines)
        tail = lines[len("".join(parts)):]
        middle = parts[ENDS:-ENDS]
        more = iterations - 2 * ENDS
        parts = parts[:ENDS] + (middle * (more // len(middle) + 1))[:more] + parts[-ENDS:]
        calls = "".join(parts) + tail
        text += f"rank {rank} calls {calls.count(chr(10))}\n{calls}"
    return text


def grown_predictions(prefix: Path, work: Path, programs: dict, short: int, long: int, count: int) -> bool:
    print(f"{'program':8} {'machine':8} {'predicted':>12} {'direct':>12} {'off':>7}   {long} steps from {short}, of the same iterations")
    kept = True
    for name, words in programs.items():
        wanted, files = long // PROGRAMS[name], (work / "short.computing", work / "long.computing")
        for _ in range(count):
            for _ in range(TRIES):
                found = compared(prefix, MACHINES, 8, [*words, short], "--iterations", wanted, "--record", files[0])
                if found["decides"] == {"iterations": wanted}:
                    break
            else:
                # The first and the last third of every recording differ.
                print(f"{name:8} has no prediction")
                kept = False
                break
            files[1].write_text(grown(name, files[0].read_text(), [*words, long], wanted))
            direct = compared(prefix, MACHINES, 8, [*words, long], "--replay", files[1])["rows"]
            for place, (one, other) in enumerate(zip(predicted(found, short // PROGRAMS[name]), direct)):
                off = one / other["seconds"] - 1
                kept &= abs(off) <= PREDICTED
                print(f"{name:8} {other['machine']:8} {one * 1e3:9.3f} ms {other['seconds'] * 1e3:9.3f} ms {off:+7.2%}"
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
    parser.add_argument("--grown", action="store_true", help="long runs of the iterations of the short ones")
    parser.add_argument("--starts", action="store_true", help="the speed-up of the loop by runs of different lengths")
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    with tempfile.TemporaryDirectory(prefix="lengths-") as work:
        programs = built(prefix, Path(work))
        if options.starts:
            return 0 if starts(prefix, programs) else 1
        chosen = {name: words for name, words in programs.items() if options.only in (None, name)}
        if options.grown:
            return 0 if grown_predictions(prefix, Path(work), chosen, options.short, options.long, options.pairs) else 1
        return 0 if predictions(prefix, chosen, options.short, options.long, options.pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
