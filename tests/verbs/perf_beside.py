#!/usr/bin/env python3
"""`fishplate perf` beside perftest's own tools: the same benchmark between the same two devices, one after the other.

    tests/verbs/perf_beside.py --fishplate build/bin/fishplate --devices rxe0,rxe2 --address 10.77.0.2 \\
        --here 'on-host 0' --there 'on-host 1'

`--here` and `--there` are prefixes of the commands of the client and of the server (for example ssh to another machine); `--address`
is the server's address. Rounds alternate, in a rotating order, because machines drift; the result is the ratio of medians. Both
get the same size, iterations and inline limit.

The script judges no ratio; its reader knows how quiet the machine was. It fails if a benchmark could not be measured, ours or
perftest's. The last line is `N measured, N not`.
"""

import argparse
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import harness  # noqa: E402

PORT = 18600
SECONDS = 100
# perftest's tool, our benchmark, size, iterations: several per benchmark, as each has its own path.
CASES = [
    ("ib_write_lat", "write-lat", 8, 500),
    ("ib_send_lat", "send-lat", 8, 500),
    ("ib_read_lat", "read-lat", 8, 500),
    ("ib_atomic_lat", "atomic-lat", 8, 500),
    ("ib_write_lat", "write-lat", 4096, 500),
    ("ib_send_lat", "send-lat", 4096, 500),
    ("ib_read_lat", "read-lat", 4096, 500),
    ("ib_write_bw", "write-bw", 65536, 200),
    ("ib_send_bw", "send-bw", 65536, 200),
    ("ib_read_bw", "read-bw", 65536, 200),
    ("ib_write_bw", "write-bw", 2048, 1000),
]


class Failed(Exception):
    pass


def listening(port: int) -> bool:
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            with open(table) as lines:
                rows = [line.split() for line in lines]
            if any(row[1].endswith(wanted) and row[3] == "0A" for row in rows if len(row) > 3):
                return True
    return False


def start(words: list):
    out = tempfile.TemporaryFile("w+")
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                               start_new_session=True)
    return process, out


def end(process, out, seconds: float) -> str:
    """Its output. Afterwards it and all processes that it started are gone."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    out.seek(0)
    said = out.read()
    out.close()
    if code != 0:
        raise Failed(f"{shlex.join(process.args)} ended with {code}:\n{said[-2000:]}")
    return said


def both(options, server: list, client: list, patient: bool) -> str:
    """The client's words. One that is not patient is started when the server listens."""
    there = start([*shlex.split(options.there), *server])
    until = time.monotonic() + (0 if patient else 20 if options.local else 3)
    while not (options.local and listening(PORT)) and there[0].poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    here = start([*shlex.split(options.here), *client])
    try:
        return end(*here, SECONDS)
    finally:
        # If the client has failed, the server would wait in vain.
        failed = sys.exc_info()[0] is not None
        try:
            end(*there, 1 if failed else 20)
        except Failed as why:
            print(why)


def perftest(options, tool: str, size: int, count: int) -> tuple[float, int]:
    """Microseconds (typical) or MB/s of 10^6 bytes, and the inline limit that it chose."""
    words = [tool, "-F", "-p", str(PORT), "-n", str(count), *shlex.split(options.perftest_options)]
    if tool != "ib_atomic_lat":
        words += ["-s", str(size)]
    here, there = options.devices.split(",")
    said = both(options, [*words, "-d", there], [*words, "-d", here, options.address], False)
    rows = [line.split() for line in said.splitlines() if re.match(r"^ *\d+ +\d+ +[\d.]", line)]
    if not rows:
        raise Failed(f"{tool} shows no result:\n{said}")
    inline = re.search(r"Max inline data *: *(\d+)", said)
    value = float(rows[-1][4 if tool.endswith("_lat") else 3])
    # Its MB are of 2^20 bytes.
    return value * (1 if tool.endswith("_lat") else 1.048576), int(inline[1]) if inline else 0


def ours(options, benchmark: str, size: int, count: int, inline: int) -> float:
    words = [options.fishplate, "perf", benchmark, "-p", str(PORT), "-n", str(count), "--json",
             "--timeout", "30", "--secret-file", options.secret_file]
    if benchmark != "atomic-lat":
        words += ["-s", str(size)]
    if benchmark.startswith(("write", "send")):
        words += ["--inline", str(inline)]
    here, there = options.devices.split(",")
    said = both(options, [*words, "--device", there], [*words, "--device", here, options.address], True)
    return json.loads(said.splitlines()[0])["median"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fishplate", default="build/bin/fishplate")
    parser.add_argument("--devices", required=True, help="the client's and the server's, with a comma between")
    parser.add_argument("--address", required=True, help="the server's")
    parser.add_argument("--here", default="", help="words before the client's command")
    parser.add_argument("--there", default="", help="words before the server's command")
    parser.add_argument("--local", action="store_true",
                        help="both are on this machine: wait until perftest's server listens, rather than three seconds")
    parser.add_argument("--perftest-options", default="", help="for perftest only, as '-x 1' for its GID")
    parser.add_argument("--secret-file", help="a token for fishplate perf, at the same place on both hosts [one of this process]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="benchmarks that contain this")
    options = parser.parse_args()
    options.secret_file = options.secret_file or harness.token_file()
    measured = failed = 0
    print(f"{'':26}{'perftest':>10}{'fishplate':>11}{'ratio':>8}   medians of {options.rounds} rounds; least and most")
    for tool, benchmark, size, count in CASES:
        if options.only not in benchmark:
            continue
        theirs, own = [], []
        try:
            value, inline = perftest(options, tool, size, count)
            theirs.append(value)
            for turn in range(options.rounds):
                if turn % 2:
                    theirs.append(perftest(options, tool, size, count)[0])
                    own.append(ours(options, benchmark, size, count, inline))
                else:
                    own.append(ours(options, benchmark, size, count, inline))
                    if turn:
                        theirs.append(perftest(options, tool, size, count)[0])
        except Failed as why:
            failed += 1
            print(f"{benchmark} of {size} bytes: {why}")
            continue
        unit = "us" if benchmark.endswith("-lat") else "MB/s"
        ratio = statistics.median(own) / statistics.median(theirs)
        spread = " ".join(f"{min(values):.1f}-{max(values):.1f}" for values in (theirs, own))
        measured += 1
        print(f"{benchmark + ', ' + str(size) + ' B, ' + unit:26}{statistics.median(theirs):10.1f}"
              f"{statistics.median(own):11.1f}{ratio:8.2f}   {spread}", flush=True)
    print(f"{measured} measured, {failed} not")
    return 1 if failed or not measured else 0


if __name__ == "__main__":
    sys.exit(main())
