"""The dashboard's server program: imports everything before the first viewer, then serves."""

import gc
import importlib
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
# As in `app`: replace this folder, whose modules would be importable by bare names, by its parent.
sys.path[:] = [entry for entry in sys.path if entry != str(_FOLDER)]
if str(_FOLDER.parent) not in sys.path:
    sys.path.append(str(_FOLDER.parent))

from altair.utils import schemapi  # noqa: E402
from streamlit import logger  # noqa: E402
from streamlit.web import cli  # noqa: E402


def main() -> None:
    """Serve the pages; takes the arguments of `streamlit run`."""
    # Avoids warnings about caches declared before the server runs; `logger.level` is set later.
    logger.set_log_level("ERROR")
    importlib.import_module("dashboard.frame")
    # Altair would validate every chart against its schema; the tests do that.
    schemapi.DEBUG_MODE = False
    # Streamlit runs the garbage collector after each view; exclude everything loaded by now.
    gc.collect()
    gc.freeze()
    cli.main(["run", str(_FOLDER / "app.py"), *sys.argv[1:]], prog_name="streamlit")


if __name__ == "__main__":
    main()
