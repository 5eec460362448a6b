#!/usr/bin/env python3
"""Breaks down the time of a short message on Soft-RoCE, step by step, in one start of the virtual machine.

    measurements/verbs/timeline.py [--prefix build] [--prefix other/build ...] [--no-peer] [--count 12000] [--seconds 1.5]

The kernel traces one C program (beside.c), with each Fishplate and with Open MPI, during a ping-pong of 8 bytes. Processor 0 receives
all packets in its interrupts, so the two ranks differ:

    rank at 0   its packet is received before its request returns; packets for it interrupt it
    rank at 1   processor 0 takes its packet if it is still receiving, otherwise it must be interrupted

The lower percentiles show the cost of the steps; the upper ones include other work on this machine.
"""

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import mpi_beside  # noqa: E402

TRACING = Path("/sys/kernel/tracing")
SENT = Path("/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts")
PROBES = "p:completion rxe_cq_post\np:packet veth_xmit\n"
EVENTS = ["kprobes", "syscalls/sys_enter_write", "irq_vectors/call_function_single_entry", "irq/softirq_exit"]
LINE = re.compile(r".*-\d+ +\[(\d+)\] +\S+ +([\d.]+): (\w+)(.*)")
PERCENTILES = (5, 10, 25, 50)


def traced(run, seconds: float) -> list:
    """The kernel's trace for some time, once packets flow: processor, microseconds, event, details."""
    (TRACING / "trace").write_text("")
    before = int(SENT.read_text())
    thread = threading.Thread(target=run)
    thread.start()
    while int(SENT.read_text()) < before + 1000 and thread.is_alive():
        time.sleep(0.01)
    (TRACING / "tracing_on").write_text("1")
    time.sleep(seconds)
    (TRACING / "tracing_on").write_text("0")
    thread.join()
    found = map(LINE.match, (TRACING / "trace").read_text().splitlines())
    return [(int(one[1]), float(one[2]) * 1e6, one[3], one[4]) for one in found if one]


def steps(events: list) -> tuple[dict, int, int]:
    """How long each step took, every time; how many packets of processor 1 were taken along, how many interrupted."""
    took: dict[str, list] = {}
    written, sent, seen = {}, {}, {}
    along = interrupted = 0
    for at, now, event, details in events:
        if event == "sys_write":
            if at in seen:
                name = "end of interrupt to request" if at == 0 else "completion to request"
                took.setdefault(f"{at}: {name}", []).append(now - seen.pop(at))
            written[at] = now
        elif event == "packet" and at in written:
            took.setdefault(f"{at}: request to packet", []).append(now - written.pop(at))
            sent[at] = now
        elif event == "softirq_exit" and at == 0 and "NET_RX" in details:
            seen[0] = now
        elif event == "call_function_single_entry" and 1 in sent:
            interrupted += 1
            took.setdefault("1: packet to interrupt", []).append(now - sent.pop(1))
        elif event == "completion":
            along += 1 in sent
            for sender in list(sent):
                took.setdefault(f"{sender}: packet to completion", []).append(now - sent.pop(sender))
            seen[1] = now
    return took, along, interrupted


def inside(options) -> int:
    subprocess.run(["mount", "-t", "tracefs", "tracing", TRACING], check=True)
    (TRACING / "kprobe_events").write_text(PROBES)
    for event in EVENTS:
        (TRACING / "events" / event / "enable").write_text("1")
    (TRACING / "buffer_size_kb").write_text("4000")
    (TRACING / "tracing_on").write_text("0")
    places = [mpi_beside.Place(prefix.resolve(), {}) for prefix in options.prefix]
    ways = {str(place.prefix): (mpi_beside.by_program, place) for place in places}
    if not options.no_peer:
        ways["open mpi"] = mpi_beside.by_peer, mpi_beside.Place(mpi_beside.ROOT / "build", {})
    print(f"{'microseconds, percentiles':40}" + "".join(f"{f'{part} %':>8}" for part in PERCENTILES))
    for name, (way, place) in ways.items():
        halves = []
        events = traced(lambda: halves.append(way(place, "latency", None, 8, None, options.count)), options.seconds)
        took, along, interrupted = steps(events)
        print(f"{name}: {halves[0] if halves else 'has failed':} us; packets of 1 taken along {along}, interrupting {interrupted}")
        for step, some in sorted(took.items()):
            some.sort()
            print(f"    {step:36}" + "".join(f"{some[len(some) * part // 100]:8.1f}" for part in PERCENTILES), flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, action="append", default=[])
    parser.add_argument("--count", type=int, default=12000, help="messages to and fro")
    parser.add_argument("--seconds", type=float, default=1.5, help="of tracing")
    parser.add_argument("--no-peer", action="store_true", help="without Open MPI")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.prefix = options.prefix or [mpi_beside.ROOT / "build"]
    if options.inside:
        return inside(options)
    for prefix in options.prefix:
        mpi_beside.compile_all(mpi_beside.Place(prefix.resolve(), {}), False)
    if not options.no_peer:
        mpi_beside.compile_all(mpi_beside.Place(mpi_beside.ROOT / "build", {}), True)
    return subprocess.run([mpi_beside.ROOT / "scripts/verbs-vm", "--timeout", "280", "--", sys.executable, __file__, "--inside",
                           *sys.argv[1:]], env=os.environ).returncode


if __name__ == "__main__":
    sys.exit(main())
