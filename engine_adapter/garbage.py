"""Keep Python's garbage collector from stopping what is timed or passed on."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loaded_set_aside() -> Iterator[None]:
    """Leave what is loaded by now out of all collections while the block runs.

    A look at all of it takes tens of milliseconds, in which no stream is read; what comes and goes
    within the block is little.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
