"""Programs: canonical solutions and mutants, graded by Draftgate and by running a script."""

import ast
import copy
import random
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from evals.evaluators.code import sandbox
from evals.evaluators.code.program import Ran, program_of
from evals.evaluators.code.sandbox import ResourceLimits, SandboxRunner
from evals.evaluators.reference import CodeTests
from evals.importing import code as importing

MUTANTS = 4
_LIMITS = ResourceLimits(cpu_s=8, wall_s=60)
_SEED = 20261121


def humaneval(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge HumanEval's solutions and their mutants."""
    return _measure(
        [(importing.humaneval(row), row["prompt"] + row["canonical_solution"]) for row in rows]
    )


def mbpp(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge MBPP's solutions and their mutants."""
    return _measure([(importing.mbpp(row), row["code"].replace("\r\n", "\n")) for row in rows])


def _measure(given: list[tuple[dict[str, Any], str]]) -> dict[str, Any]:
    tasks = []
    for line, solution in given:
        reference = line["reference"]
        tests = CodeTests(reference["entry_point"], reference["prelude"], reference["tests"])
        tasks.append((line["id"], "canonical", tests, solution))
        for kind, mutant in mutants(solution, line["id"]):
            tasks.append((line["id"], kind, tests, mutant))
    runner, found, differing = SandboxRunner(_LIMITS), Counter[str](), list[Any]()
    started = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        judged = pool.map(lambda task: _both(runner, *task[2:]), tasks)
        for (id_, kind, _, _), (ours, theirs) in zip(tasks, judged, strict=True):
            passed = ours == Ran(None)
            found[f"{kind}: {'passes' if passed else 'fails'}"] += 1
            found[f"official {'agrees' if passed == theirs else 'differs'}"] += 1
            if passed != theirs or (kind == "canonical" and not passed):
                differing.append((id_, kind, str(ours), theirs))
    killed = sum(n for k, n in found.items() if k.startswith("mutant") and k.endswith("fails"))
    planted = sum(n for k, n in found.items() if k.startswith("mutant"))
    return dict(sorted(found.items())) | {
        "mutation_score": round(killed / planted, 4) if planted else None,
        "s_both_ways": round((time.perf_counter() - started) / len(tasks), 3),
        "differing": differing[:25],
    }


def _both(runner: SandboxRunner, reference: CodeTests, answer: str) -> tuple[Any, bool]:
    ours = runner.run(program_of(reference, answer), reference.tests)
    return ours, _script_passes(f"{answer}\n{reference.tests}")


def _script_passes(script: str) -> bool:
    """Run program and tests as one script; it passes if its last line is reached."""
    nonce = secrets.token_hex(16)
    command = [sandbox._bubblewrap(), *sandbox._arguments()]  # noqa: SLF001
    worker = len(command) - 2  # before it: the interpreter and its two options
    limits = ["/bin/sh", "-c", 'ulimit -v 524288 -t 8; exec "$@"', "sh"]
    python = command[worker - 3 : worker]
    command = [*command[: worker - 3], *limits, *python, "-c", f"{script}\nprint({nonce!r})\n"]
    try:
        ran = subprocess.run(  # noqa: S603
            command,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0 and ran.stdout.rstrip().endswith(nonce)


def mutants(source: str, seed: str) -> Iterator[tuple[str, str]]:
    """Yield up to four programs with one planted fault each, of as many kinds as possible."""
    tree = ast.parse(source)
    found = [(kind, mutated) for kind, mutated in _all_mutants(tree)]
    chosen = random.Random(f"{_SEED} {seed}")  # noqa: S311
    chosen.shuffle(found)
    by_kind: dict[str, list[str]] = {}
    for kind, text in found:
        by_kind.setdefault(kind, []).append(text)
    left = MUTANTS
    while left and any(by_kind.values()):
        for kind in sorted(by_kind):
            if by_kind[kind] and left:
                yield f"mutant, {kind}", by_kind[kind].pop()
                left -= 1


def _all_mutants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for at, node in enumerate(ast.walk(tree)):
        for kind, change in _CHANGES:
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[at]
            if type(target) is type(node) and change(target):
                yield kind, ast.unparse(ast.fix_missing_locations(changed))


def _return_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        node.value = ast.Constant(None)
        return True
    return False


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _negate(node: ast.AST) -> bool:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return True
    return False


_ARITHMETIC: dict[type, type] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add}


def _other_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
        node.op = _ARITHMETIC[type(node.op)]()
        return True
    return False


_COMPARE: dict[type, type] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE,
    ast.LtE: ast.Gt, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def _other_comparison(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        node.ops[0] = _COMPARE[type(node.ops[0])]()
        return True
    return False


_CHANGES = (
    ("returns nothing", _return_nothing),
    ("condition negated", _negate),
    ("other arithmetic", _other_arithmetic),
    ("other comparison", _other_comparison),
)
