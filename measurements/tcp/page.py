#!/usr/bin/env python3
"""Makes docs/figures/tcp.md of the figures that measurements/tcp/measure.py has written.

    measurements/tcp/page.py JSON... > docs/figures/tcp.md
"""

import json
import statistics
import sys
from pathlib import Path

NAMES = {"bare, spin": "bare, spinning", "bare, pieces": "bare, in pieces", "bare, block": "bare, blocking", "frames": "frames",
         "fishplate": "Fishplate", "impi": "Intel MPI", "mpich-ofi": "MPICH, OFI", "mpich-ucx": "MPICH, UCX", "openmpi": "Open MPI",
         "openmpi-ucx": "Open MPI, UCX", "spin": "spinning", "pieces": "in pieces", "zerocopy": "MSG_ZEROCOPY", "uring": "io_uring"}
PEERS = ["impi", "mpich-ofi", "mpich-ucx"]
BARE = ["bare, spin", "bare, pieces", "bare, block"]
HEAD = """# Figures over TCP

*By `measurements/tcp/measure.py` on a quiet virtual machine with two hardware threads of an AMD EPYC, Linux 6.18. Two network namespaces are the hosts, a veth
pair is the cable, MTU 1500, congestion control `cubic`. Everything of a table ran in turn in one run; medians of the rounds (least–most). "bare" is a program
with nothing but sockets: `spinning` polls, `in pieces` sends at most 128 KiB in a call, `blocking` sleeps. "frames" is `perf write-lat` and `write-bw` on the
device `tcp:eth0`. To repeat: `python3 measurements/tcp/measure.py --peers DIR --rounds 9 --only ROWS --json FILE`, with the libraries of `scripts/peers.sh DIR openmpi`,
then `python3 measurements/tcp/page.py FILE...`.*
"""
NOTES = """
Of the time of 8 bytes the kernel has four fifths, and a rank's own work about 1 µs. From 64 KiB on the caches decide: the two hardware threads share those of
one core, and a call of the kernel with a whole long message, or megabytes that wait in a socket, push out what is copied next. The device therefore sends at
most 128 KiB in a call, and has the kernel keep 256 KiB where the round trip is at most 15 µs. Streams of 1 MiB and more became two to three times as fast by
both. At 64 KiB the notices and announcements of a rendezvous cost a tenth to a third of the time.

MSG_ZEROCOPY copies all the same where the peer is on this machine, and pays at no length here. On a network card it is not measured, and it is not built.
io_uring costs latency and gains no bandwidth; it is not built.

Strangers and ranks share the two cores in these rows: the ranks lack the processor time of 1,000 strangers, and the effect beyond it is not separated.
"""


def cell(values: list) -> str:
    middle = statistics.median(values)
    digits = 2 if middle < 100 else 1 if middle < 1000 else 0
    return f"{middle:,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def table(rows: dict, labels: list) -> list[str]:
    lines = ["| | " + " | ".join(NAMES.get(label, label) for label in labels) + " |", "| --- |" + " ---: |" * len(labels)]
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(cell(row[label]) if label in row else "" for label in labels) + " |")
    return lines


def size(name: str) -> int:
    return int(name.split()[1])


def targets(rows: dict) -> list[str]:
    middle = {name: {label: statistics.median(values) for label, values in row.items()} for name, row in rows.items()}
    lines = ["| what | wanted | found | met |", "| --- | --- | ---: | --- |"]

    def line(what: str, wanted: str, found: float, is_met: bool) -> None:
        lines.append(f"| {what} | {wanted} | {found:.2f} | {'yes' if is_met else '**no**'} |")

    row = middle["latency 8 B, µs"]
    found = row["frames"] / min(row[label] for label in BARE if label in row)
    line("8 B, latency of frames / bare", "at most 1.15", found, found <= 1.15)
    found = row["fishplate"] / min(row[peer] for peer in PEERS)
    line("8 B, latency of MPI / best other library's", "at most 0.9", found, found <= 0.9)
    row = middle["rate 8 B, messages/s"]
    found = row["fishplate"] / max(row[peer] for peer in PEERS)
    line("8 B, rate of MPI / best other library's", "at least 2", found, found >= 2)
    for name, row in middle.items():
        if not name.startswith("bandwidth"):
            continue
        bare, length = max(row[label] for label in BARE), f"{size(name)} KiB"
        for label, what, wanted in [("frames", "frames / bare", 0.95), ("fishplate", "MPI / bare", 0.9)]:
            if size(name) >= 64:
                line(f"{length}, bandwidth of {what}", f"at least {wanted}", row[label] / bare, row[label] >= wanted * bare)
        found = row["fishplate"] / max(row[peer] for peer in PEERS)
        line(f"{length}, bandwidth of MPI / best other library's", "above 1", found, found > 1)
    if row := middle.get("shared memory, latency 8 B, ns"):
        found = row["16 silent peers"] / row["0 silent peers"]
        line("8 B in shared memory, with 16 silent TCP peers / without", "at most 1.05", found, found <= 1.05)
    if row := middle.get("idle poll, ns"):
        found = row["63 connections"] / row["1 connections"]
        line("idle poll, of 63 connections / of one", "at most 1.5", found, found <= 1.5)
    return lines


def main() -> int:
    rows = {}
    for name in sys.argv[1:]:
        rows |= json.loads(Path(name).read_text())
    main_rows = {name: row for name, row in rows.items() if "fishplate" in row and not name.startswith("stream.c")}
    openmpi = {name.removeprefix("stream.c, "): row for name, row in rows.items() if name.startswith("stream.c")}
    sockets = {name.removeprefix("bare sockets, "): row for name, row in rows.items() if name.startswith("bare sockets")}
    others = {name: row for name, row in rows.items() if name.startswith(("strangers", "shared memory", "idle"))}
    out = [HEAD, *targets(rows), "", "## Beside other libraries", "", *table(main_rows, [*BARE, "frames", "fishplate", *PEERS])]
    if openmpi:
        out += ["", "## Beside Open MPI", "", "*Both by `tests/tcp/stream.c`; Open MPI has another binary interface. The limited rails carry 1,000 Mbit/s each, or 400 and 1,600.*",
                "", *table(openmpi, ["fishplate", "openmpi", "openmpi-ucx"])]
    if sockets:
        out += ["", "## Ways of the kernel, bare", "", *table(sockets, ["spin", "pieces", "zerocopy", "uring"])]
    if others:
        out += ["", "## Strangers, and peers that are silent", "", "| | |", "| --- | --- |"]
        out += [f"| {name} | " + "; ".join(f"{label}: {cell(values)}" for label, values in row.items()) + " |" for name, row in others.items()]
    print("\n".join(out) + "\n" + NOTES, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
