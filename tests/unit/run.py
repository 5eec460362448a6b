#!/usr/bin/env python3
"""Every Rust test of the workspace, and the examples in its documentation.

    tests/unit/run.py [--compile]

tests/rust.py says how. The last line is `N passed, N failed, N skipped`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import rust  # noqa: E402

if __name__ == "__main__":
    sys.exit(rust.run("unit", __doc__))
