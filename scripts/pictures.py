#!/usr/bin/env python3
"""Draws the pictures of README.md from what the staged command prints: docs/explain.svg and docs/trace.svg.

    scripts/pictures.py [--prefix build] [--into docs]

Both show modelled machines, so the same version draws the same bytes.
"""

import argparse
import json
import subprocess
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Size of a letter of the monospaced font, and of a row of the trace.
LETTER, LINE, ROW = 7.3, 17, 22
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
# Okabe and Ito: distinct for any colour vision.
COLOURS = {"call": "#0072b2", "work": "#e69f00", "hca": "#009e73", "link": "#d55e00"}
# Width of the trace and of the labels of its rows.
WIDE, LABELS = 900, 200


def svg(width: float, height: float, title: str, parts: list) -> str:
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
            f'role="img">\n<title>{escape(title)}</title>\n'
            f'<rect width="100%" height="100%" rx="6" fill="#ffffff" stroke="#d0d0d0"/>\n' + "\n".join(parts) + "\n</svg>\n")


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more} xml:space="preserve">{escape(words)}</text>'


def terminal(command: str, printed: str) -> str:
    """A command and its output, as on a terminal."""
    lines = [f"$ {command}", *printed.rstrip().splitlines()]
    width = max(map(len, lines)) * LETTER + 32
    parts = [f'<g font-family="{FONT}" font-size="12" fill="#24292f">']
    parts += [text(16, 26 + at * LINE, line, 'font-weight="bold"' if at == 0 else "") for at, line in enumerate(lines)]
    return svg(width, 26 + len(lines) * LINE, f"Output of {command}", [*parts, "</g>"])


def kind(row: str) -> str:
    return next((kind for word, kind in (("calls", "call"), ("CPU", "work"), ("link", "link")) if word in row), "hca")


def trace(command: str, events: list) -> str:
    """The spans of a trace, a row for each track, over the last message."""
    hosts = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    spans = [event for event in events if event["ph"] == "X"]
    first, last = window(spans)
    spans = [span for span in spans if span["ts"] < last and span["ts"] + span["dur"] > first]
    rows = sorted({(span["pid"], span["tid"]) for span in spans})
    place = {row: 58 + at * ROW for at, row in enumerate(rows)}
    scale = (WIDE - LABELS - 20) / (last - first)
    across = lambda time: LABELS + (min(max(time, first), last) - first) * scale  # noqa: E731
    parts = ['<g font-family="sans-serif" font-size="11" fill="#24292f">', text(16, 24, f"$ {command}", f'font-family="{FONT}" font-weight="bold"')]
    bottom = 58 + len(rows) * ROW
    for tick in range(int(last - first) + 1):
        parts.append(f'<path d="M{across(first + tick):.1f} 48V{bottom}" stroke="#e5e5e5"/>')
        parts.append(text(across(first + tick), 43, f"{tick} µs", 'text-anchor="middle" fill="#57606a"'))
    for row in rows:
        label = f"{hosts[row[0]]}, {names[row].replace('rail 0: ', '')}"
        parts.append(text(LABELS - 8, place[row] + 14, label, 'text-anchor="end"'))
    for span in spans:
        row = (span["pid"], span["tid"])
        left, right = across(span["ts"]), across(span["ts"] + span["dur"])
        wide = max(right - left, 0.7)
        parts.append(f'<rect x="{left:.1f}" y="{place[row] + 2}" width="{wide:.1f}" height="{ROW - 5}" rx="1.5" '
                     f'fill="{COLOURS[kind(names[row])]}" stroke="#ffffff" stroke-width="0.5"><title>{escape(span["name"])}</title></rect>')
        if len(span["name"]) * 6.2 < wide:
            parts.append(text(left + 3, place[row] + 14, span["name"], 'fill="#ffffff"'))
    return svg(WIDE, bottom + 12, f"Trace of {command}", [*parts, "</g>"])


def window(spans: list) -> tuple:
    """The time of a message of rank 0: from MPI_Send on its host to the end of MPI_Recv on the other."""
    calls = sorted((span for span in spans if span["name"] in ("MPI_Send", "MPI_Recv")), key=lambda span: span["ts"])
    # The last messages are those that end the benchmark.
    long = max((span for span in spans if span["name"].startswith("write")), key=lambda span: span["dur"])["name"]
    last = max(span["ts"] for span in spans if span["name"] == long and span["pid"] == 1)
    send = [call for call in calls if call["pid"] == 1 and call["name"] == "MPI_Send" and call["ts"] < last][-1]
    arrived = next(call for call in calls if call["pid"] == 2 and call["name"] == "MPI_Recv" and call["ts"] + call["dur"] > last)
    margin = 0.1
    return send["ts"] - margin, arrived["ts"] + arrived["dur"] + margin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=Path, default=ROOT / "build")
    parser.add_argument("--into", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    fishplate = str(options.prefix / "bin/fishplate")
    run = lambda *words: subprocess.run([fishplate, *words], check=True, capture_output=True, text=True).stdout  # noqa: E731

    words = ["fabric", "explain", "qdr", "--size", "8"]
    (options.into / "explain.svg").write_text(terminal(f"fishplate {' '.join(words)}", run(*words)))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        words = ["bench", "latency", "--fabric", "qdr", "-m", "4K:4K", "-i", "2", "-x", "1"]
        run(*words, "--trace", str(file))
        events = json.loads(file.read_text())["traceEvents"]
    (options.into / "trace.svg").write_text(trace(f"fishplate {' '.join(words)} --trace trace.json", events))


if __name__ == "__main__":
    main()
