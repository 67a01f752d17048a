"""Tool calls against the official AST checker of the Berkeley Function Calling Leaderboard."""

import importlib
import json
import sys
import time
import types
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.graders.generation import generation, text
from evals.evaluators import TaskCompletion
from evals.importing.tool_calls import bfcl as imported

Call = dict[str, dict[str, Any]]
_MODEL = "any"
_VARIANTS = ("other spelling", "whole number for a float")


def measure(rows: list[dict[str, Any]], wheel: Path | None) -> dict[str, Any]:
    """Judge the reference calls and mutants of them with both checkers."""
    official = _official(wheel) if wheel else None
    evaluator, found, differing = TaskCompletion(), Counter[str](), list[Any]()
    took_s = judged = 0.0
    for row in rows:
        reference = imported(row)["reference"]
        for kind, calls in _answers(row):
            parts = [_part(name, arguments) for call in calls for name, arguments in call.items()]
            given = generation(reference, parts or text("I have no function for that."))
            started = time.perf_counter()
            score = evaluator.score(given)
            took_s, judged = took_s + time.perf_counter() - started, judged + 1
            assert score is not None
            ours = score.value == 1.0
            found[f"{kind}: {'accepted' if ours else 'rejected'}"] += 1
            if official is None or not row["ground_truth"]:
                continue
            theirs = official(row, calls)
            found[f"official {'agrees' if ours == theirs else 'differs'}"] += 1
            if ours != theirs:
                differing.append((row["id"], kind, ours, score.explanation))
    evaluator.close()
    return dict(sorted(found.items())) | {
        "ms_an_answer": round(1000 * took_s / judged, 3),
        "differing": differing[:25],
    }


def _part(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "arguments": arguments}


def _answers(row: dict[str, Any]) -> Iterator[tuple[str, list[Call]]]:
    """Yield the correct answer, and mutants that are wrong by construction."""
    truth = row["ground_truth"]
    if not truth:
        wants_call = "irrelevance" not in row["category"]
        call: list[Call] = [{"some_function": {}}]
        yield "no function: right", call if wants_call else []
        yield "no function: wrong", [] if wants_call else call
        return
    right = [_first_accepted(call) for call in truth]
    yield "reference", right
    yield "mutant, a call too few", right[1:]
    yield "mutant, a call too many", [*right, right[0]]
    yield (
        "mutant, other function",
        [{"another_function": next(iter(right[0].values()))}, *right[1:]],
    )
    for at, expected in enumerate(right):
        ((name, arguments),) = expected.items()
        for changed, kind in _mutants(arguments, truth[at][name]):
            name_of = "variant" if kind in _VARIANTS else "mutant"
            yield f"{name_of}, {kind}", [*right[:at], {name: changed}, *right[at + 1 :]]


def _first_accepted(call: dict[str, Any]) -> Call:
    ((name, arguments),) = call.items()
    given = {k: _value(o) for k, o in arguments.items() if any(v != "" for v in o)}
    return {name: given}


def _value(options: list[Any]) -> Any:
    first = next(option for option in options if option != "")
    if isinstance(first, dict) and all(isinstance(v, list) for v in first.values()):
        return {k: _value(v) for k, v in first.items() if any(x != "" for x in v)}
    if isinstance(first, list) and first and all(isinstance(v, dict) for v in first):
        return [_value([v]) for v in first]
    return first


def _mutants(arguments: dict[str, Any], truth: Any) -> Iterator[tuple[dict[str, Any], str]]:
    yield arguments | {"not_a_parameter": 1}, "extra argument"
    for key, value in arguments.items():
        if isinstance(value, str):
            yield arguments | {key: f" {value.upper()}."}, "other spelling"
        elif isinstance(value, float) and value == int(value):
            yield arguments | {key: int(value)}, "whole number for a float"
    for key, value in arguments.items():
        rest = {k: v for k, v in arguments.items() if k != key}
        if "" not in truth[key]:
            yield rest, "argument left out"
        yield rest | {key: [{"other": "type"}]}, "other type"
        if (changed := _other(value)) not in truth[key]:
            kind = "longer list" if isinstance(value, list) else "other value"
            yield rest | {key: changed}, kind


def _other(value: Any) -> Any:
    """Return a value of the same type that is not this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 987_654
    if isinstance(value, str):
        return value + "qx"
    if isinstance(value, list):
        return [*value, *(value[:1] or ["qx"])]
    return value | {"qx": 1} if isinstance(value, dict) else value


def _official(wheel: Path) -> Any:
    """Load only the checker, with stubs for the modules that import every model's client."""
    with TemporaryDirectory() as folder:
        base = "bfcl_eval/"
        wanted = (
            "constants/enums.py", "constants/type_mappings.py",
            "eval_checker/ast_eval/ast_checker.py",
        )  # fmt: skip
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(base) and name[len(base) :] in wanted:
                    archive.extract(name, folder)
        for name in ("", "constants", "eval_checker", "eval_checker.ast_eval"):
            package = types.ModuleType(f"bfcl_eval.{name}".rstrip("."))
            package.__path__ = [f"{folder}/bfcl_eval/{name.replace('.', '/')}"]
            sys.modules[package.__name__] = package
        config = types.SimpleNamespace(underscore_to_dot=False)
        _stand_in("bfcl_eval.constants.model_config", MODEL_CONFIG_MAPPING={_MODEL: config})
        converters = "bfcl_eval.eval_checker.ast_eval.type_convertor"
        _stand_in(converters)
        for language in ("java", "js"):
            function = f"{language}_type_converter"
            _stand_in(f"{converters}.{function}", **{function: None})
        checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
        python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON

    def accepts(row: dict[str, Any], calls: list[Call]) -> bool:
        # An exception of the checker counts as a rejection.
        answer = json.loads(json.dumps(calls))
        try:
            return bool(
                checker.ast_checker(
                    row["function"], answer, row["ground_truth"], python, row["category"], _MODEL
                )["valid"]
            )
        except (AttributeError, KeyError, TypeError, IndexError):
            return False

    return accepts


def _stand_in(name: str, **values: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(values)
    sys.modules[name] = module
