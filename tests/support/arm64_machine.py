"""A 64-bit ARM machine, emulated: Debian's Python for it, and the checkout with PyPI's wheels.

Debian's packages and qemu are fetched and unpacked in the user's cache; nothing is installed and
no root is needed. Run this file to make it.
"""

import os
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from commands import run

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "draftgate" / "arm64"
_GLIBCS = ("manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28")


def missing() -> str | None:
    """Return why there can be no such machine here, or `None`."""
    return None if shutil.which("apt-get") else "no apt-get to fetch Debian's packages with"


def command(*arguments: str) -> list[str]:
    """Return what runs the checkout's `draftgate` on it; makes it if it is missing or outdated."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted: list[str] = project["dependencies"]
    ready = CACHE / ".ready"  # what is installed; another checkout may need other wheels
    if not ready.exists() or ready.read_text() != "\n".join(wanted):
        shutil.rmtree(CACHE, ignore_errors=True)
        _unpack(("qemu-user-static",), None, CACHE / "qemu")
        _unpack(("python3", "libstdc++6"), "arm64", CACHE / "root")
        _install_wheels(wanted)
        ready.write_text("\n".join(wanted))
    paths = f"{CACHE / 'wheels'}:{ROOT}"
    return [*_python("-E", f"PYTHONPATH={paths}"), "-m", "draftgate", *arguments]


def _python(*options: str) -> list[str]:
    qemu = CACHE / "qemu" / "usr" / "bin" / "qemu-aarch64-static"
    root = CACHE / "root"
    return [str(qemu), "-L", str(root), *options, str(root / "usr" / "bin" / "python3")]


def _unpack(packages: Sequence[str], architecture: str | None, target: Path) -> None:
    """Fetch packages and their dependencies, using its own package lists, and unpack them."""
    apt = target.with_name(f"{target.name}-apt")
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True)
    (apt / "status").touch()
    settings = {
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    } | ({"APT::Architecture": architecture} if architecture else {})
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    if architecture:
        options += ["-o", f"APT::Architectures::={architecture}"]
    run("apt-get", *options, "update")
    only = ("-y", "--download-only", "--no-install-recommends")
    run("apt-get", *options, "install", *only, *packages)
    target.mkdir()
    for deb in sorted((apt / "cache" / "archives").glob("*.deb")):
        run("dpkg", "-x", str(deb), str(target))
    shutil.rmtree(apt)


def _install_wheels(wanted: Sequence[str]) -> None:
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    version = run(*_python(), "-c", asked).strip()
    platforms = [word for glibc in _GLIBCS for word in ("--platform", f"{glibc}_aarch64")]
    options = ("--quiet", "--only-binary=:all:", "--python-version", version, *platforms)
    target = ("--target", str(CACHE / "wheels"))
    run(sys.executable, "-m", "pip", "install", *options, *target, *wanted)


if __name__ == "__main__":
    sys.stdout.write(" ".join(command("--help")) + "\n")
