"""Other packages' metrics: is the package there, and can a metric be made of its name alone."""

import inspect
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any  # Any: what other packages hold, whose types are not there

from evals.errors import EvaluatorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package, and the version from which on its interface is the one used here."""

    prefix: str
    """What an evaluator's name begins with."""
    distribution: str
    minimum: tuple[int, int]

    def version(self) -> str:
        """Return the version that is installed; raises `EvaluatorError` without a usable one."""
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


def named(module: ModuleType, name: str, evaluator: str, usable: Callable[[Any], bool]) -> Any:
    """Return the module's metric of this name; raises `EvaluatorError` with those there are."""
    found = getattr(module, name, None)
    if found is None or not usable(found):
        there = sorted(n for n in dir(module) if usable(getattr(module, n)))
        raise EvaluatorError(f"no metric {evaluator}; there are {', '.join(there)}")
    return found


def made(
    metric: Callable[..., Any],
    evaluator: str,
    known: dict[str, Any],
    errors: tuple[type[Exception], ...],
) -> Any:
    """Call a metric's class with what it takes of `known`; raises `EvaluatorError`."""
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


def only_known(evaluator: str, wanted: Iterable[str], known: AbstractSet[str]) -> None:
    """Raise `EvaluatorError` where a metric wants what no generation carries."""
    if lacking := sorted(set(wanted) - known):
        raise EvaluatorError(
            f"{evaluator} wants {', '.join(lacking)}, which is not recorded of an answer; "
            f"there are {', '.join(sorted(known))}"
        )


def refusals(*own: type[Exception]) -> tuple[type[Exception], ...]:
    """Return what a package raises that refuses to make a metric or a model's client."""
    try:
        # Without a key the client refuses to be made.
        return (*own, ValueError, ImportError, import_module("openai").OpenAIError)
    except ImportError:
        return (*own, ValueError, ImportError)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
