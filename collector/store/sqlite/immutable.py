"""Files that no process can change, even through an open descriptor: `chattr +i`, snapshots."""

import ctypes
import os
import struct
import sys
from typing import Final

_HERE: Final = -100  # AT_FDCWD
_IMMUTABLE: Final = 0x10  # STATX_ATTR_IMMUTABLE
_ATTRIBUTES: Final = struct.Struct("8xQ")
_STATX_BYTES: Final = 256
_libc: Final = ctypes.CDLL(None) if sys.platform != "win32" else None


def is_immutable(path: str) -> bool:
    """Say whether the system says so of the file; nothing is opened, for closing it frees locks."""
    if _libc is None or not hasattr(_libc, "statx"):  # of Linux alone
        return False
    told = ctypes.create_string_buffer(_STATX_BYTES)
    if _libc.statx(_HERE, os.fsencode(path), 0, 0, told):
        return False
    (attributes,) = _ATTRIBUTES.unpack_from(told)
    return bool(attributes & _IMMUTABLE)
