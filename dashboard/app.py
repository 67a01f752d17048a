"""The dashboard's entry point: `streamlit run` executes this file for every view."""

import sys
from pathlib import Path

# Streamlit puts this file's folder first on the path, so that its modules would be importable by
# bare names such as `words`; `import dashboard` needs the parent folder instead.
_FOLDER = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if entry != str(_FOLDER)]
if str(_FOLDER.parent) not in sys.path:
    sys.path.append(str(_FOLDER.parent))

from dashboard.frame import main  # noqa: E402

main()
