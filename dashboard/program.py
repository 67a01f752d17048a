"""The dashboard's program: it is loaded before the first viewer comes, then served."""

import gc
import importlib
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
# As in `app`: not this folder, whose modules would answer to bare names, but the one above.
sys.path[:] = [entry for entry in sys.path if entry != str(_FOLDER)]
if str(_FOLDER.parent) not in sys.path:
    sys.path.append(str(_FOLDER.parent))

from altair.utils import schemapi  # noqa: E402
from streamlit import logger  # noqa: E402
from streamlit.web import cli  # noqa: E402


def main() -> None:
    """Serve the views; the arguments are those of `streamlit run`."""
    # Else it warns of caches that are declared before it runs; it is told its own level below.
    logger.set_log_level("ERROR")
    importlib.import_module("dashboard.frame")
    # It would hold every part of every chart against the schema; the tests do.
    schemapi.DEBUG_MODE = False
    # Streamlit collects garbage after each view, and would look at all of this each time.
    gc.collect()
    gc.freeze()
    cli.main(["run", str(_FOLDER / "app.py"), *sys.argv[1:]], prog_name="streamlit")


if __name__ == "__main__":
    main()
