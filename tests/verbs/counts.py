#!/usr/bin/env python3
"""Requests, completions, packets, acknowledgements and bytes of a message: on a modelled machine and on a real stack.

    tests/verbs/counts.py [--prefix build] [--markdown FILE]

The command starts the machine of scripts/verbs-vm, measures there, and prints a table; `--markdown` writes it into FILE, between its
marks. On the real stack, packets are counted by the devices, and bytes by the network interfaces below them. The counts of both ends are
added and divided by the number of messages. A run with a retransmission, or with other traffic, is repeated.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

ADDRESS = "10.77.0.2"
DEVICES = {"rxe0": "r0h0", "rxe2": "r0h1"}
# Counters of retransmissions.
AGAIN = ("duplicate_request", "out_of_seq_request", "rcvd_seq_err", "rcvd_rnr_err", "send_rnr_err", "completer_retry_err")
ATTEMPTS = 6
MTU = 4096
FABRIC = "fdr"
# With the transport, unless it is a reliable connection.
BENCHMARKS = ("write-lat", "send-lat", "read-lat", "write-bw", "atomic-lat", "write-lat uc", "send-lat uc", "send-lat ud")
# Messages of each size in each direction: an emulated processor takes milliseconds for a megabyte.
SIZES = {8: 100, 4 << 10: 100, 64 << 10: 20, 1 << 20: 4}
# InfiniBand has LRH, variant checksum and delimiters (8 + 2 + 2) where RoCE v2 has Ethernet, IPv4 and UDP (14 + 20 + 8).
ROCE_MORE = 14 + 20 + 8 - (8 + 2 + 2)
COLUMNS = ("work_requests", "completions", "packets", "acknowledgements", "wire_bytes")
BEGIN, END = "<!-- table -->", "<!-- end of the table -->"


@dataclass
class Seen:
    """Counts of one message."""

    work_requests: float
    completions: float
    packets: float
    acknowledgements: float | None
    wire_bytes: float


def words(fishplate: Path, benchmark: str, size: int) -> list[str]:
    # Few messages in flight: the emulated processor is slow, and a message that waits too long is retransmitted.
    depth = ["--tx-depth", "4", "--cq-mod", "1"] if benchmark.endswith("-bw") else []
    name, *transport = benchmark.split()
    length = [] if name == "atomic-lat" else ["-s", size]
    more = ["--transport", *transport] if transport else depth
    words = [fishplate, "perf", name, *length, "-n", SIZES[size], "--mtu", MTU, "--json", *more]
    return list(map(str, words))


def sizes(benchmark: str) -> list[int]:
    """The possible sizes: an atomic has 8 bytes, and a datagram is one packet."""
    most = 8 if benchmark == "atomic-lat" else MTU if benchmark.endswith("ud") else max(SIZES)
    return [size for size in SIZES if size <= most]


def messages(benchmark: str, size: int) -> int:
    """Latencies of writes and sends are measured over round trips."""
    return SIZES[size] * (2 if benchmark.startswith(("write-lat", "send-lat")) else 1)


def modelled(fishplate: Path, benchmark: str, size: int) -> Seen:
    done = harness.run([*words(fishplate, benchmark, size), "--fabric", FABRIC], seconds=60)
    if done.code != 0:
        raise Problem(str(done))
    counts = json.loads(done.out.splitlines()[0])["counts"]
    return Seen(*(counts[name] / messages(benchmark, size) for name in COLUMNS))


def counters() -> dict:
    """Counters of devices and interfaces, summed over both hosts."""
    total = dict.fromkeys((*AGAIN, "sent_pkts", "tx_packets", "tx_bytes"), 0)
    for device, interface in DEVICES.items():
        for name in (*AGAIN, "sent_pkts"):
            total[name] += int(Path(f"/sys/class/infiniband/{device}/ports/1/hw_counters/{name}").read_text())
        for name in ("tx_packets", "tx_bytes"):
            total[name] += int(Path(f"/sys/class/net/{interface}/statistics/{name}").read_text())
    return total


def run_between_hosts(fishplate: Path, benchmark: str, size: int) -> dict:
    command = [*words(fishplate, benchmark, size), "--secret-file", harness.token_file()]
    server = subprocess.Popen(["on-host", "1", *command, "--device", "rxe2"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        done = harness.run(["on-host", "0", *command, "--device", "rxe0", ADDRESS], seconds=60)
        if done.code != 0 or server.wait(20) != 0:
            raise Problem(str(done))
    finally:
        harness.kill_session(server.pid)
        server.wait()
    return json.loads(done.out.splitlines()[0])["counts"]


def real(fishplate: Path, benchmark: str, size: int) -> Seen:
    count = messages(benchmark, size)
    for _ in range(ATTEMPTS):
        before = counters()
        asked = run_between_hosts(fishplate, benchmark, size)
        time.sleep(0.1)  # the last acknowledgement
        moved = {name: value - before[name] for name, value in counters().items()}
        if moved["tx_packets"] == moved["sent_pkts"] and not any(moved[name] for name in AGAIN):
            return Seen(asked["work_requests"] / count, asked["completions"] / count, moved["sent_pkts"] / count, None,
                        moved["tx_bytes"] / count)
    raise Problem(f"{benchmark} of {size} bytes: each of {ATTEMPTS} runs had a retransmission, or other traffic: {moved}")


def with_acknowledgements(seen: Seen, model: Seen) -> Seen:
    """Devices do not count acknowledgements: they are the packets beyond those that a message has on the model."""
    seen.acknowledgements = seen.packets - (model.packets - model.acknowledgements)
    return seen


def both(fishplate: Path, benchmark: str, size: int) -> tuple[Seen, Seen]:
    model = modelled(fishplate, benchmark, size)
    return model, with_acknowledgements(real(fishplate, benchmark, size), model)


def as_on_the_model(benchmark: str, size: int):
    def test(world) -> None:
        model, seen = both(world.prefix / "bin/fishplate", benchmark, size)
        expected = Seen(model.work_requests, model.completions, model.packets, model.acknowledgements,
                        model.wire_bytes + ROCE_MORE * model.packets)
        if seen != expected:
            raise Problem(f"{seen}, not {expected}")
    return test


def tests() -> list[Case]:
    # Soft-RoCE sends more acknowledgements for longer messages: see docs/figures/verbs-counts.md.
    return [Case(f"counts: {benchmark} of {size} bytes is as on the model", as_on_the_model(benchmark, size),
                 short=size == 8 and benchmark == "write-lat")
            for benchmark in BENCHMARKS for size in sizes(benchmark) if size <= 64 << 10]


def size_words(size: int) -> str:
    return next(f"{size >> shift} {unit}" for shift, unit in ((20, "MiB"), (10, "KiB"), (0, "B")) if size >> shift)


def number(value: float) -> str:
    return f"{value:g}" if value < 1000 else f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def row(benchmark: str, size: int, model: Seen, seen: Seen) -> str:
    cells = [benchmark, size_words(size)]
    for name in COLUMNS:
        one, two = getattr(model, name), getattr(seen, name)
        cells.append(number(one) if one == two else f"{number(one)} / {number(two)}")
    return f"| {' | '.join(cells)} |"


HEADER = """| benchmark | size | work requests | completions | packets | acknowledgements of these | bytes on the wire |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |"""


def inside(fishplate: Path) -> int:
    failed = 0
    print(HEADER, flush=True)
    for benchmark in BENCHMARKS:
        for size in sizes(benchmark):
            try:
                print(row(benchmark, size, *both(fishplate, benchmark, size)), flush=True)
            except Problem as problem:
                failed += 1
                print(f"counts: {problem}", file=sys.stderr, flush=True)
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="put the table into this file")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    if options.inside:
        return inside(prefix / "bin/fishplate")
    command = [harness.ROOT / "scripts/verbs-vm", "--timeout", 900, "--", "python3", __file__, "--inside", "--prefix", prefix]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    if done.returncode == 0 and options.markdown:
        before, rest = options.markdown.read_text().split(BEGIN)
        after = rest.split(END)[1]
        options.markdown.write_text(f"{before}{BEGIN}\n{done.stdout}{END}{after}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
