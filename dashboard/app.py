"""The dashboard's entry: `streamlit run` executes this file once for every view."""

import sys
from pathlib import Path

# Streamlit puts this file's own folder first on the path, where its modules would answer to bare
# names such as `words`; the folder above is what `import dashboard` needs.
_FOLDER = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if entry != str(_FOLDER)]
if str(_FOLDER.parent) not in sys.path:
    sys.path.append(str(_FOLDER.parent))

from dashboard.frame import main  # noqa: E402

main()
