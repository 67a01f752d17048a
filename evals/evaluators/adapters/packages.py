"""Find and instantiate other packages' metrics, with errors that name the missing part."""

import inspect
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any  # Any: objects of other packages, which have no types here

from evals.errors import EvaluatorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package, and the oldest version that has the interface used here."""

    prefix: str
    """Prefix of its evaluators' names."""
    distribution: str
    minimum: tuple[int, int]

    def version(self) -> str:
        """Return the installed version; raises `EvaluatorError` if it is missing or too old."""
        wanted = ".".join(map(str, self.minimum))
        command = f'pip install "{self.distribution}>={wanted}"'
        try:
            found = version(self.distribution)
        except PackageNotFoundError:
            raise EvaluatorError(
                f"{self.prefix}: the package {self.distribution} is not installed; "
                f"install it beside draftgate: {command}"
            ) from None
        if _numbers(found) < self.minimum:
            raise EvaluatorError(
                f"{self.prefix}: {self.distribution} {found} is installed, wanted {wanted} or "
                f"newer: {command}"
            )
        return found

    def module(self, name: str) -> ModuleType:
        """Import a module of the package; raises `EvaluatorError`."""
        self.version()
        try:
            return import_module(name)
        except ImportError as exc:
            raise EvaluatorError(f"{self.prefix}: {name} cannot be imported: {exc}") from exc


def find_metric(
    module: ModuleType, name: str, evaluator: str, usable: Callable[[Any], bool]
) -> Any:
    """Return the module's metric of this name; raises `EvaluatorError`, which lists them all."""
    found = getattr(module, name, None)
    if found is None or not usable(found):
        available = sorted(n for n in dir(module) if usable(getattr(module, n)))
        raise EvaluatorError(f"no metric {evaluator}; there are {', '.join(available)}")
    return found


def instantiate(
    metric: Callable[..., Any],
    evaluator: str,
    known: dict[str, Any],
    errors: tuple[type[Exception], ...],
) -> Any:
    """Call a metric's class with those of the `known` arguments that it takes.

    Raises `EvaluatorError` if another argument is required, or for one of `errors`.
    """
    parameters = inspect.signature(metric).parameters
    required = {
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
    if lacking := sorted(required - known.keys()):
        raise EvaluatorError(
            f"{evaluator} cannot be made without {', '.join(lacking)}: make the metric in a module "
            "of yours and name it by an entry point (docs/evaluators.md, other packages' metrics)"
        )
    try:
        return metric(**{k: v for k, v in known.items() if k in parameters})
    except errors as exc:
        raise EvaluatorError(f"{evaluator}: {type(exc).__name__}: {exc}") from exc


def require_recorded(evaluator: str, wanted: Iterable[str], known: AbstractSet[str]) -> None:
    """Raise `EvaluatorError` if a metric wants a field that is not recorded of an answer."""
    if lacking := sorted(set(wanted) - known):
        raise EvaluatorError(
            f"{evaluator} wants {', '.join(lacking)}, which is not recorded of an answer; "
            f"there are {', '.join(sorted(known))}"
        )


def construction_errors(*own: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the exceptions that constructing a metric or a model's client may raise."""
    try:
        # The client raises OpenAIError if it has no key.
        return (*own, ValueError, ImportError, import_module("openai").OpenAIError)
    except ImportError:
        return (*own, ValueError, ImportError)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
