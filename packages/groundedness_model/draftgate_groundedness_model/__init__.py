"""The weights of Draftgate's `groundedness-model`, in 8 bits; `draftgate` reads them."""

from pathlib import Path

FOLDER = Path(__file__).parent
