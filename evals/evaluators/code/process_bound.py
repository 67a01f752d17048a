"""Limit the processes and the total memory of a sandboxed program.

RLIMIT_NPROC does not limit processes that root launches, whatever user they see inside the
sandbox. So root needs a control group, or an unprivileged user to launch each sandbox under. For
other users the limit that the worker sets inside the sandbox's user namespace suffices.
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
"""Processes of one sandbox; threads count too."""
TOTAL_MEMORY_BYTES = 768 * 2**20
_GROUP_ROOT = Path("/sys/fs/cgroup")
_FIRST_UID, _UIDS = 61_184, 4_000  # of the range that systemd hands out to transient services
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Launch:
    """The control groups and user to launch one sandbox with."""

    groups: tuple[Path, ...] = ()
    """Control groups that the launcher joins first."""
    uid: int | None = None
    """User to launch under; None: the current one."""

    def wrap(self, command: list[str]) -> list[str]:
        """Wrap the command in a shell that first joins the control groups."""
        if not self.groups:
            return command
        join = "".join(f"echo $$ > {group}/cgroup.procs && " for group in self.groups)
        return ["/bin/sh", "-c", f'{join}exec "$@"', "sandbox", *command]


class NoProcessBoundError(RuntimeError):
    """There is no way here to limit the processes that root launches."""


class ProcessBound:
    """Limits each launch by the best means of this machine, which are detected once."""

    def __init__(self, *, readable_by_all: bool) -> None:
        """Detect the means; `readable_by_all`: any user can start the interpreter."""
        self._is_root = os.geteuid() == 0
        self._controllers = _controllers() if self._is_root else {}
        if self._is_root and not self._controllers and not readable_by_all:
            raise NoProcessBoundError(
                "as root the number of processes can be bounded by a writable pids control group "
                "or under an unprivileged user that can read the Python in use; here is neither: "
                "evaluate as another user than root"
            )
        for folder in self._controllers.values():
            _remove_stale_groups(folder)

    @property
    def kind(self) -> str:
        """The means in use: `cgroup`, `uid` or `rlimit`."""
        if not self._is_root:
            return "rlimit"
        return "cgroup" if self._controllers else "uid"

    @contextmanager
    def launch(self) -> Iterator[Launch]:
        """Set up the limits of one launch; remove its control groups on exit."""
        number = next(_numbers)
        if not self._is_root:
            yield Launch()
        elif not self._controllers:
            yield Launch(uid=_FIRST_UID + (os.getpid() * 64 + number) % _UIDS)
        else:
            name = f"draftgate-{os.getpid()}-{number}"
            groups = [
                _make_group(folder / name, kind) for kind, folder in self._controllers.items()
            ]
            try:
                yield Launch(groups=tuple(dict.fromkeys(groups)))
            finally:
                for group in groups:
                    _remove_group(group)


def _controllers() -> dict[str, Path]:
    """Return folders in which control groups can be created, by controller.

    Empty if there is none for `pids`.
    """
    found: dict[str, Path] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for kind in ("pids", "memory"):
            if kind in names.split(","):
                found[kind] = _GROUP_ROOT / kind / path.lstrip("/")
    if not found:  # cgroup v2: one tree, with the controllers that its root delegates
        delegated = _GROUP_ROOT / "cgroup.subtree_control"
        if delegated.exists():
            kinds = delegated.read_text().split()
            found = {kind: _GROUP_ROOT for kind in ("pids", "memory") if kind in kinds}
    usable = {kind: folder for kind, folder in found.items() if _is_usable(folder, kind)}
    return usable if "pids" in usable else {}


def _is_usable(folder: Path, kind: str) -> bool:
    try:
        _remove_group(_make_group(folder / f"draftgate-{os.getpid()}-probe", kind))
    except OSError:
        return False
    return True


def _make_group(group: Path, kind: str) -> Path:
    group.mkdir(exist_ok=True)
    if kind == "pids":
        (group / "pids.max").write_text(str(MAX_PROCESSES))
        return group
    version_1 = group / "memory.limit_in_bytes"
    limit = version_1 if version_1.exists() else group / "memory.max"
    limit.write_text(str(TOTAL_MEMORY_BYTES))
    return group


def _remove_group(group: Path) -> None:
    """Remove a control group; retry for about 10 s while its last process exits."""
    for _ in range(2000):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.005)
        else:
            return


def _remove_stale_groups(folder: Path) -> None:
    """Remove control groups left behind by evaluator processes that were killed."""
    for group in folder.glob("draftgate-*-*"):
        pid = group.name.split("-")[1]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            with contextlib.suppress(OSError):
                group.rmdir()
