"""How many processes, and how much memory, all of a sandboxed program may have together.

RLIMIT_NPROC does not bind what root launches, whatever user the program then sees itself as. So
root needs a control group, or an unprivileged user of its own to launch under; anybody else is
bound by the limit that the worker sets inside the sandbox's user namespace.
"""

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MAX_PROCESSES = 16
"""Threads count, too."""
TOTAL_MEMORY_BYTES = 768 * 2**20
_GROUP_ROOT = Path("/sys/fs/cgroup")
_FIRST_UID, _UIDS = 61_184, 4_000  # of the range that systemd hands out to transient services
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Launch:
    """How one sandbox is to be launched."""

    groups: tuple[Path, ...] = ()
    """Control groups that the launcher joins first."""
    uid: int | None = None
    """User to launch under."""

    def wrap(self, command: list[str]) -> list[str]:
        """Return the command so that it joins the groups before anything else."""
        if not self.groups:
            return command
        join = "".join(f"echo $$ > {group}/cgroup.procs && " for group in self.groups)
        return ["/bin/sh", "-c", f'{join}exec "$@"', "sandbox", *command]


class NoProcessBoundError(RuntimeError):
    """Nothing here can bound the processes of what root launches."""


class ProcessBound:
    """Bounds each launch by what this machine offers; looked up once, at the start."""

    def __init__(self, *, readable_by_all: bool) -> None:
        """`readable_by_all`: an unprivileged user could start the interpreter."""
        self._is_root = os.geteuid() == 0
        self._controllers = _controllers() if self._is_root else {}
        if self._is_root and not self._controllers and not readable_by_all:
            raise NoProcessBoundError(
                "as root the number of processes can be bounded by a writable pids control group "
                "or under an unprivileged user that can read the Python in use; here is neither: "
                "evaluate as another user than root"
            )
        for folder in self._controllers.values():
            _sweep(folder)

    @property
    def kind(self) -> str:
        """Say what bounds: `cgroup`, `uid` or `rlimit`."""
        if not self._is_root:
            return "rlimit"
        return "cgroup" if self._controllers else "uid"

    @contextmanager
    def launch(self) -> Iterator[Launch]:
        """Give what one launch needs, and take it back when nothing of it runs any more."""
        number = next(_numbers)
        if not self._is_root:
            yield Launch()
        elif not self._controllers:
            yield Launch(uid=_FIRST_UID + (os.getpid() * 64 + number) % _UIDS)
        else:
            name = f"draftgate-{os.getpid()}-{number}"
            groups = [_made(folder / name, kind) for kind, folder in self._controllers.items()]
            try:
                yield Launch(groups=tuple(dict.fromkeys(groups)))
            finally:
                for group in groups:
                    _removed(group)


def _controllers() -> dict[str, Path]:
    """Return the folders in which control groups can be made, those of `pids` at the least."""
    found: dict[str, Path] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for kind in ("pids", "memory"):
            if kind in names.split(","):
                found[kind] = _GROUP_ROOT / kind / path.lstrip("/")
    if not found:  # version 2: one tree, whose controllers its parent hands down
        handed_down = _GROUP_ROOT / "cgroup.subtree_control"
        if handed_down.exists():
            kinds = handed_down.read_text().split()
            found = {kind: _GROUP_ROOT for kind in ("pids", "memory") if kind in kinds}
    usable = {kind: folder for kind, folder in found.items() if _is_usable(folder, kind)}
    return usable if "pids" in usable else {}


def _is_usable(folder: Path, kind: str) -> bool:
    try:
        _removed(_made(folder / f"draftgate-{os.getpid()}-probe", kind))
    except OSError:
        return False
    return True


def _made(group: Path, kind: str) -> Path:
    group.mkdir(exist_ok=True)
    if kind == "pids":
        (group / "pids.max").write_text(str(MAX_PROCESSES))
        return group
    version_1 = group / "memory.limit_in_bytes"
    limit = version_1 if version_1.exists() else group / "memory.max"
    limit.write_text(str(TOTAL_MEMORY_BYTES))
    return group


def _removed(group: Path) -> None:
    """Remove a group; its last process may still be on its way out."""
    for _ in range(200):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.005)
        else:
            return


def _sweep(folder: Path) -> None:
    """Remove the groups that killed processes of ours left behind."""
    for group in folder.glob("draftgate-*-*"):
        pid = group.name.split("-")[1]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            with contextlib.suppress(OSError):
                group.rmdir()
