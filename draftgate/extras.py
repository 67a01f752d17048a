"""The distribution's extras: find the one that installs a missing package."""

from typing import Final

_PACKAGES: Final = {
    "alembic": "collector",
    "altair": "dashboard",
    "authlib": "oidc",
    "clickhouse_connect": "clickhouse",
    "cryptography": "sign",
    "fastapi": "collector",
    "gguf": "llamacpp",
    "h2": "collector",
    "onnxruntime": "groundedness-model",
    "psycopg": "collector",
    "pyarrow": "arrow",
    "pynvml": "gpu",
    "re2": "collector",
    "safetensors": "transformers",
    "sqlalchemy": "collector",
    "starlette": "collector",
    "streamlit": "dashboard",
    "tokenizers": "transformers",
    "torch": "transformers",
    "transformers": "transformers",
    "uvicorn": "collector",
    "xllamacpp": "llamacpp",
}
"""The extra that installs each package, by the package's import name."""


_OF_COMMANDS: Final = {
    "serve": ("collector",),
    "db": ("collector",),
    "keys": ("collector",),
    "notify": ("collector",),
    "dashboard": ("dashboard",),
    "demo": ("collector", "dashboard", "transformers"),
}
"""The extras that a command cannot do without; they bring PyArrow too."""


def missing_extra(error: BaseException, command: str) -> str | None:
    """Return how to install what a command misses, or `None` if the error is a different one.

    It names every extra of the command, so that installing them once is enough.
    """
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name.partition(".")[0]
    extra = _PACKAGES.get(package)
    if extra is None:
        return None
    extras = _OF_COMMANDS.get(command, ())
    named = extras if extra in (*extras, "arrow") and extras else (extra,)
    remedy = f"pip install 'draftgate[{','.join(named)}]'"
    if extra == "collector" and not extras:  # it would open a database itself
        remedy += ", or name a collector that runs elsewhere with --collector"
    return f"{package} is not installed; {remedy}"
