"""Times of the suites, kept in the tree: times.json has the processor seconds of each in `make test-ci`, or in full where it runs only so.

Machines differ, so a run is compared by the ratios of all suites: one has grown if its ratio exceeds the median ratio of all by a tenth.
"""

import json
import statistics
from pathlib import Path

KEPT = Path(__file__).resolve().parent / "times.json"
# A suite has grown by more than this factor, and by more than these seconds on a machine as the kept one.
FACTOR, SECONDS = 1.1, 5


def kept() -> dict:
    """Seconds and processor seconds of each suite."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def keep(rows: list[dict], full: bool) -> None:
    """Keeps the times of the suites that have passed. A run in full keeps those alone that no other run has."""
    known = kept()
    for row in rows:
        if row["status"] == 0 and not (full and row["suite"] in known):
            known[row["suite"]] = {name: round(row[name]) for name in ("seconds", "processor_seconds")}
    KEPT.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def growth(rows: list[dict]) -> str:
    """A line for each suite that takes more processor time than the kept times let expect."""
    known = kept()
    ratios = {row["suite"]: row["processor_seconds"] / known[row["suite"]]["processor_seconds"]
              for row in rows if row["status"] == 0 and known.get(row["suite"], {}).get("processor_seconds", 0) > SECONDS}
    if len(ratios) < 5:
        return ""
    usual = statistics.median(ratios.values())
    lines = []
    for suite, ratio in ratios.items():
        expected = known[suite]["processor_seconds"] * usual
        if ratio > FACTOR * usual and ratio * known[suite]["processor_seconds"] > expected + SECONDS:
            lines.append(f"grown: {suite} takes {ratio / usual:.2f} times the processor time that tests/times.json lets expect here\n")
    return "".join(lines)
