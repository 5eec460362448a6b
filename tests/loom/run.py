#!/usr/bin/env python3
"""Every order of the memory accesses of rings, doorbells and the worker of files.

    tests/loom/run.py [--compile]

tests/rust.py says how. The last line is `N passed, N failed, N skipped`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import rust  # noqa: E402

if __name__ == "__main__":
    sys.exit(rust.run("loom", __doc__))
