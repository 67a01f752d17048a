"""Compiles the hot paths while the package is built or installed.

They are what every span passes (reader, laws, rows, columns), and the thread that reads streams.
Without a compiler the package is the same, reads spans more slowly, and says so when it serves; its
clock is then less exact with hundreds of streams at once.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCES = (
    Path("collector/otlp/_span_reader.c"),
    Path("collector/contract/_laws.c"),
    Path("collector/store/_rows.c"),
    *([Path("engine_adapter/transport/_arrivals.c")] if sys.platform == "linux" else []),
)


class ExtensionsBuildHook(BuildHookInterface[Any]):
    """Builds each of the sources as a module in its place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatchling's
        """Compile, and put what came of it into the wheel; nothing with DRAFTGATE_PURE=1."""
        if os.environ.get("DRAFTGATE_PURE") == "1":
            return
        root = Path(self.root)
        for source in _SOURCES:
            built = source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
            try:
                subprocess.run(_command(root / source, root / built), check=True)  # noqa: S603  # ours
            except (OSError, subprocess.CalledProcessError) as exc:
                if os.environ.get("DRAFTGATE_REQUIRE_COMPILER"):
                    raise
                self.app.display_warning(
                    f"{source} was not compiled, what it does is slower: {exc}"
                )
                continue
            build_data["force_include"][str(root / built)] = str(built)
            build_data["infer_tag"] = True
            build_data["pure_python"] = False


def _command(source: Path, out: Path) -> list[str]:
    """Return the compiler's command line: that of Python's own extensions."""
    config = sysconfig.get_config_vars("LDSHARED", "CFLAGS", "CCSHARED")
    link, flags, position_independent = (shlex.split(value or "") for value in config)
    include = f"-I{sysconfig.get_path('include')}"
    return [*link, *flags, *position_independent, "-O2", include, str(source), "-o", str(out)]
