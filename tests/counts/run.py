#!/usr/bin/env python3
"""Count the instructions of the hot paths under callgrind and hold them against tests/counts/expected.

    tests/counts/run.py [--prefix build] [--update]

Clocks wobble, instruction counts do not: a path that has grown by more than 3 % fails the run, and
so does one that has shrunk by more than 15 %, so that the gain is written down (`--update`).
The last line is `N passed, N failed`.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATHS = ["send_8", "send_1024", "isend_8", "irecv_8", "waitall_8", "recv_8", "empty_poll"]
ROUNDS = 100
EXPECTED = HERE / "expected"


def count(prefix: Path, path: str, program: Path, scratch: Path) -> float:
    out, met = scratch / f"{path}.out", scratch / f"{path}.met"
    counted = (
        f'if [ "$FISHPLATE_RANK" = 0 ]; then exec valgrind --tool=callgrind --toggle-collect={path} '
        f'--callgrind-out-file={out} {program} {met} 2>{scratch}/{path}.log; else exec {program} {met}; fi'
    )
    # Otherwise the launcher would choose by the caches that the ranks' cores happen to share.
    environment = os.environ | {"FISHPLATE_CORES": "far"}
    command = [prefix / "bin/fishplate", "run", "-n", "2", "sh", "-c", counted]
    subprocess.run(command, check=True, timeout=120, env=environment)
    total = re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.M)
    if not total:
        sys.exit(f"callgrind counted nothing for {path}: {(scratch / f'{path}.log').read_text()}")
    return int(total[1]) / ROUNDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=Path("build"))
    parser.add_argument("--update", action="store_true", help="write the counts down")
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "hot"
        subprocess.run([prefix / "bin/mpicc", "-O2", "-g", HERE / "hot.c", "-o", program], check=True)
        counts = {path: count(prefix, path, program, Path(scratch)) for path in PATHS}
    if options.update:
        EXPECTED.write_text("".join(f"{path} {counts[path]:.1f}\n" for path in PATHS))
    expected = dict(line.split() for line in EXPECTED.read_text().splitlines())
    failed = 0
    print(f"{'path':12} {'instructions':>12} {'expected':>9}")
    for path in PATHS:
        ratio = counts[path] / float(expected[path])
        bad = not 0.85 <= ratio <= 1.03
        failed += bad
        print(f"{path:12} {counts[path]:12.1f} {float(expected[path]):9.1f}{'  <-- ' + f'{ratio:.2f} x' if bad else ''}")
    print(f"{len(PATHS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
