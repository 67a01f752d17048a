"""Hides compiled extensions from all Python processes whose `PYTHONPATH` begins with this folder.

PYTHONPATH=$PWD/tests/support/uncompiled pytest tests/collector
"""

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]

for source in _ROOT.glob("[!.]*/**/_*.c"):
    module = ".".join(source.relative_to(_ROOT).with_suffix("").parts)
    sys.modules[module] = None  # type: ignore[assignment]  # so that importing it fails
os.environ["DRAFTGATE_UNCOMPILED_TESTS"] = "1"
