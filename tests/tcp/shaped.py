#!/usr/bin/env python3
"""Measures what predict.py has predicted, on shaped rails, and compares the two.

    tests/tcp/shaped.py [--prefix build] [--rounds 9]    writes shaped/measured.json, and prints the table of docs/user/model.md
    tests/tcp/shaped.py --table                          prints the table of the files that are there

In each round every figure is measured once, one after the other. It is a measurement: run it on a quiet machine. The tests of this
module compare the files with each other, and need no quiet.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
import network  # noqa: E402
import predict  # noqa: E402
import shapes  # noqa: E402
from harness import Case, Problem  # noqa: E402
from network import Hosts  # noqa: E402
from kernels import run as kernels  # noqa: E402

MEASURED = shapes.DATA / "measured.json"
DOCUMENT = harness.ROOT / "docs/user/model.md"
# Errors that count as agreement, in percent.
LIMITS = {"latency": 15, "bandwidth": 10, "gain": 10, "share": 10, "kernel": 15}
# The change of a prediction by later work on the library that needs no new one, in percent.
DRIFT = 5


def measured(prefix: Path, figure: shapes.Figure) -> float:
    """A figure over real rails."""
    with Hosts(prefix, rails=len(figure.rails), kind="wire") as hosts:
        for rail, wanted in enumerate(figure.rails):
            shapes.shape(hosts, rail, wanted)
        return figure.over(hosts)


def all_rounds(prefix: Path, rounds: int) -> dict:
    found = {}
    for number in range(rounds):
        values = {str(figure): measured(prefix, figure) for figure in shapes.figures()}
        for name, value in (values | shapes.derived(values)).items():
            found.setdefault(name, []).append(value)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def kind(name: str) -> str:
    return next((kind for kind in LIMITS if kind in name), "kernel")


def table(predicted: dict, found: dict) -> str:
    """The table of docs/user/model.md."""
    lines = ["| rails: figure | predicted | measured (least to most) | error | limit |", "| --- | ---: | ---: | ---: | --- |"]
    units = {str(figure): f" {figure.unit}" for figure in shapes.figures()}
    for name, value in predicted.items():
        middle, unit = statistics.median(found[name]), units.get(name, "")
        error = 100 * (value / middle - 1)
        limit = LIMITS[kind(name)]
        verdict = f"{limit} %" if abs(error) <= limit else f"{limit} %, missed"
        ends = f"{min(found[name]):.4g} to {max(found[name]):.4g}"
        lines.append(f"| {name} | {value:.4g}{unit} | {middle:.4g}{unit} ({ends}) | {error:+.1f} % | {verdict} |")
    return "\n".join(lines)


def files() -> tuple[dict, dict]:
    return json.loads(predict.PREDICTIONS.read_text()), json.loads(MEASURED.read_text())


# Tests: the files agree with each other, and with the library as it is.

def machine_is_the_fit(world) -> None:
    if predict.machine(world.prefix) != predict.MACHINE.read_text():
        raise Problem(f"{predict.MACHINE} is not what `fabric calibrate` makes of {predict.CALIBRATION}")


def predictions_hold(world) -> str:
    """Predictions of today's library. Those of kernels contain the computing of the computer that made them."""
    kept, off = json.loads(predict.PREDICTIONS.read_text()), {}
    for figure in shapes.figures():
        if figure.what in ("latency", "bandwidth"):
            off[str(figure)] = 100 * (predict.predicted(world.prefix, figure) / kept[str(figure)] - 1)
    if far := {name: round(percent, 1) for name, percent in off.items() if abs(percent) > DRIFT}:
        raise Problem(f"the library has changed since the predictions, in percent: {far}")
    return f"within {max(map(abs, off.values())):.2g} % of the predictions kept"


def document_has_the_table(world) -> None:
    if table(*files()) not in DOCUMENT.read_text():
        raise Problem(f"{DOCUMENT} has another table than tests/tcp/shaped.py --table")


def tests() -> list[Case]:
    return [
        Case("shaped: the machine is the fit", machine_is_the_fit),
        Case("shaped: the predictions hold", predictions_hold),
        Case("shaped: the document has the table", document_has_the_table),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--table", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if not options.table:
        prefix = harness.checked_prefix(options.prefix)
        if reason := network.missing():
            sys.exit(reason)
        network.remove_leftovers()
        for kernel in shapes.KERNELS:
            kernels.compile_kernel(prefix, kernel.split()[0], kernel.split()[0])
        MEASURED.write_text(json.dumps(all_rounds(prefix, options.rounds), indent=1, ensure_ascii=False) + "\n")
    print(table(*files()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
