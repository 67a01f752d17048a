"""Programs and their tests: HumanEval, MBPP, BigCodeBench and LiveCodeBench."""

import ast
import base64
import json
import pickle
import zlib
from typing import Any

from evals.importing.row import JsonObject, Line, RowError, identity, objects, text, texts

COHORT = "code"


def humaneval(row: JsonObject) -> Line:
    """Convert a function to complete from its head; its `check` function is the test."""
    entry_point, prompt = text(row, "entry_point"), text(row, "prompt")
    tests = f"{text(row, 'test')}\ncheck({entry_point})\n"
    return _line(identity(row, "task_id"), prompt, _tests(entry_point, prompt, tests))


def mbpp(row: JsonObject) -> Line:
    """Convert a function to write from a description; the row's asserts are the tests."""
    asserts = texts(row, "test_list")
    task = text(row, "text", "prompt")
    prompt = f"{task}\nThe code must pass these tests:\n" + "\n".join(asserts)
    setup = row.get("test_setup_code") or "\n".join(row.get("test_imports") or [])
    number = identity(row, "task_id")
    id_ = number if "/" in number else f"MBPP/{number}"
    # The setup uses classes that the answer defines, so it runs after the answer.
    tests = "\n".join([setup, *asserts] if setup else asserts) + "\n"
    return _line(id_, prompt, _tests(_function_called(asserts), "", tests))


def bigcodebench(row: JsonObject) -> Line:
    """Convert a function to complete that uses libraries; a `unittest` case is the test.

    Programs can use the libraries installed in Draftgate's environment; without them they fail.
    """
    prelude = text(row, "code_prompt", "complete_prompt")
    tests = (
        f"{text(row, 'test')}\n"
        "import unittest\n"
        "_result = unittest.TestResult()\n"
        "unittest.defaultTestLoader.loadTestsFromTestCase(TestCases).run(_result)\n"
        "_wrong = _result.errors + _result.failures\n"
        "if _wrong:\n"
        "    raise AssertionError(_wrong[0][1].strip().splitlines()[-1])\n"
        "assert _result.testsRun > 0\n"
    )
    prompt = text(row, "complete_prompt", "instruct_prompt")
    entry_point = text(row, "entry_point")
    return _line(identity(row, "task_id"), prompt, _tests(entry_point, prelude, tests))


def livecodebench(row: JsonObject) -> Line:
    """Convert a contest problem: a script with standard input, or a method of `Solution`."""
    cases = [*_cases(row, "public_test_cases"), *_cases(row, "private_test_cases")]
    if not cases:
        raise RowError("public_test_cases: holds no case")
    starter = row.get("starter_code") or ""
    prompt = text(row, "question_content")
    if starter:
        prompt += f"\nStart from this code:\n{starter}"
    if cases[0].get("testtype") == "functional":
        reference = _tests("Solution", "from typing import *\n", _functional(row, cases))
    else:
        pairs = [{"stdin": text(c, "input"), "stdout": text(c, "output")} for c in cases]
        reference = {"kind": "stdio", "cases": pairs}
    return _line(identity(row, "question_id"), prompt, reference)


def _functional(row: JsonObject, cases: list[JsonObject]) -> str:
    metadata = row.get("metadata")
    try:
        name = json.loads(metadata)["func_name"] if isinstance(metadata, str) else None
    except (ValueError, KeyError, TypeError) as exc:
        raise RowError("metadata: wanted JSON with func_name") from exc
    if not isinstance(name, str) or not name.isidentifier():
        raise RowError("metadata: wanted JSON with func_name")
    tests = ["import json"]
    for case in cases:
        arguments = "\n".join(line for line in text(case, "input").splitlines() if line.strip())
        tests.append(
            f"assert Solution().{name}(*map(json.loads, {arguments!r}.splitlines())) "
            f"== json.loads({text(case, 'output')!r})"
        )
    return "\n".join(tests) + "\n"


def _cases(row: JsonObject, key: str) -> list[JsonObject]:
    """Return the cases from a list, a JSON text, or base64 of zlib of a pickled JSON text."""
    given = row.get(key)
    if not given:
        return []
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = _unpacked(given, key)
    return objects({key: given}, key)


def _unpacked(packed: str, key: str) -> Any:  # Any: JSON
    try:
        unpickled = _TextOnly(zlib.decompress(base64.b64decode(packed))).load()
        return json.loads(unpickled)
    except (ValueError, TypeError, EOFError, zlib.error, pickle.UnpicklingError) as exc:
        raise RowError(f"{key}: neither JSON nor packed JSON ({exc})") from exc


class _TextOnly:
    """Reads a pickle of one text; refuses everything else, since the file is not trusted."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def load(self) -> str:
        """Return the text; raises `UnpicklingError` for anything else."""
        import io  # noqa: PLC0415  # used only here

        class Strict(pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:  # Any: pickle's own signature
                raise pickle.UnpicklingError(f"{module}.{name} is no text")

        found = Strict(io.BytesIO(self._packed)).load()  # can only return plain values
        if not isinstance(found, str):
            raise pickle.UnpicklingError("wanted a text")
        return found


def _function_called(asserts: list[str]) -> str:
    """Return the name of the function that the asserts call, empty if there is none."""
    for line in asserts:
        try:
            tree = ast.parse(line)
        except SyntaxError:
            continue
        names = [
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        known = [name for name in names if name not in _BUILTIN_CALLS]
        if known:
            return known[0]
    return ""


_BUILTIN_CALLS = frozenset({"set", "sorted", "list", "tuple", "len", "abs", "round", "str", "int"})


def _tests(entry_point: str, prelude: str, tests: str) -> JsonObject:
    return {"kind": "tests", "entry_point": entry_point, "prelude": prelude, "tests": tests}


def _line(id_: str, prompt: str, reference: JsonObject) -> Line:
    return {"id": id_, "cohort": COHORT, "prompt": prompt, "reference": reference}
