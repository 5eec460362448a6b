#!/usr/bin/env python3
"""Programs of other ABIs than the standard's: over the libraries of others, under tools, and the names that they may import.

    tests/abis/run.py [--prefix build] [--only TEXT] [--list]

The cases are in libraries.py, symbols.py, further_names.py, fortran_libraries.py, fortran.py and tools.py. Libraries of others come from PyPI
(scripts/peers.sh, PEERS names a folder of them); a case whose library cannot be fetched is skipped. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import fortran  # noqa: E402
import fortran_libraries  # noqa: E402
import further_names  # noqa: E402
import harness  # noqa: E402
import libraries  # noqa: E402
import symbols  # noqa: E402
import tools  # noqa: E402


@dataclass
class World:
    prefix: Path
    work: Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    options = parser.parse_args()
    cases = [case for module in (libraries, symbols, further_names, fortran_libraries, fortran, tools) for case in module.cases() if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    with tempfile.TemporaryDirectory(prefix="fishplate-abis-") as work:
        return harness.run_suite("abis", cases, World(prefix, Path(work)))


if __name__ == "__main__":
    sys.exit(main())
