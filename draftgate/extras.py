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


def missing_extra(error: BaseException) -> str | None:
    """Return how to install the package if the error is that an extra's is missing, else `None`."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name.partition(".")[0]
    extra = _PACKAGES.get(package)
    if extra is None:
        return None
    return f"{package} is not installed; pip install 'draftgate[{extra}]'"
