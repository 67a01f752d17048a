"""Running a model's code without a sandbox: what passes, fails and is refused."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.evaluators import TaskCompletion
from evals.evaluators.code.program import Ran, Refused, program_of
from evals.evaluators.code.restricted import RestrictedRunner
from evals.evaluators.code.sandbox import INSTALL
from evals.evaluators.reference import CodeTests

TESTS = "assert f(1, 2) == 3\nassert f(2, 2) == 4\n"
TOO_DEEP = "RecursionError: maximum recursion depth exceeded"
SIMPLE = "def f(a, b):\n    return a + b\n"


@pytest.fixture(scope="module")
def runner() -> Iterator[RestrictedRunner]:
    made = RestrictedRunner()
    yield made
    made.close()


@pytest.mark.parametrize(
    "program",
    [
        SIMPLE,
        "def f(a, b):\n    total = a\n    total += b\n    return total\n",
        (
            "def f(a, b):\n    xs = [a]\n    xs += [b]\n    d = {}\n    d['k'] = sum(xs)\n"
            "    p, q = a, b\n    return d['k'] if p <= q else f'{p}'\n"
        ),
        "def f(a, b):\n    print('working', a)\n    return max(sum(x for x in (a, b)), 0)\n",
        (
            "def f(a, b):\n    try:\n        return a // 0\n    except ZeroDivisionError:\n"
            "        return a + b\n"
        ),
        "def f(a, b):\n    while a < 0:\n        a = a + 1\n    return pow(a, 1) + b\n",
    ],
)
def test_right_programs_pass(runner, program) -> None:
    """Plain Python passes its tests: arithmetic, loops, lists, dictionaries, exceptions, print."""
    assert runner.run(program, TESTS) == Ran(None)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("def f(a, b):\n    return a - b\n", "tests: failed: assert f(1, 2) == 3"),
        ("def f(a, b)\n    return a\n", "syntax error in line 1: expected ':'"),
        ("x = 1\n  y = 2\n", "syntax error in line 2: unexpected indent"),
        ("def g(a, b):\n    return a\n", "tests: NameError: name 'f' is not defined"),
        ("", "tests: NameError: name 'f' is not defined"),
        ("def f(a, b):\n    return {}[a]\n", "tests: KeyError: 1"),
        ("def f(a, b):\n    return f(a, b)\n", f"tests: {TOO_DEEP}"),
        ("def f(a, b):\n    return add(a, b)\n", "tests: NameError: name 'add' is not defined"),
        ("raise ValueError('x' * 10**6)\n", "program: ValueError: " + "x" * 200),
    ],
)  # fmt: skip
def test_wrong_programs_fail_with_the_reason(runner, program, problem) -> None:
    """A program that does not parse, raises or fails a test is wrong, and says where."""
    assert runner.run(program, TESTS) == Ran(problem)


@pytest.mark.parametrize(
    "program",
    [
        "def f(a, b):\n    while True:\n        pass\n",
        (
            "def f(a, b):\n    while True:\n        try:\n            f(a, b)\n"
            "        except Exception:\n            pass\n"
        ),
        "def f(a, b):\n    return sum(range(10**15))\n",
    ],
)
def test_endless_programs_are_stopped(runner, program) -> None:
    """Endless loops, also inside one C call, end after a second of work."""
    assert runner.run(program, TESTS) == Ran("ran past its time (1 s of work, 2.0 s in all)")


@pytest.mark.parametrize(
    "program",
    [
        "def f(a, b):\n    return [0] * 10**10\n",
        "def f(a, b):\n    x = [1]\n    while True:\n        x = x + x\n",
        "def f(a, b):\n    s = 'x'\n    while True:\n        s = s * 2\n",
        "x = list(range(10**9))\n",
    ],
)
def test_memory_bombs_are_contained(runner, program) -> None:
    """A program that grows without end runs out of its own memory, and only that."""
    result = runner.run(program, TESTS)
    assert isinstance(result, Ran)
    assert result.problem is not None
    assert "MemoryError" in result.problem or "past its time" in result.problem
    assert runner.run(SIMPLE, TESTS) == Ran(None)


def test_powers_are_bounded(runner) -> None:
    """A tower of powers is refused by `pow` and ended by the clock as `**`."""
    called = runner.run("def f(a, b):\n    return pow(9, 9**9)\n", TESTS)
    assert called == Ran("tests: ValueError: the power is too large")
    written = runner.run("def f(a, b):\n    return 9**9**9**9\n", TESTS)
    assert isinstance(written, Ran)
    assert written.problem is not None


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("def f(a, b):\n    return ().__class__\n", "uses attribute access"),
        ("def f(a, b):\n    return [a, b].count(a)\n", "uses attribute access"),
        ("def f(a, b):\n    return f'{a.__class__}'\n", "uses attribute access"),
        ("import os\n" + SIMPLE, "imports a module"),
        ("from os import system\n" + SIMPLE, "imports a module"),
        ("class A:\n    pass\n" + SIMPLE, "defines a class"),
        ("def f(a, b):\n    yield a\n", "is a generator"),
        ("def f(a, b):\n    return open('/x')\n", "uses open, which only a sandbox offers"),
        (
            "def f(a, b):\n    try:\n        x = type(a)\n    except Exception:\n        x = 0\n",
            "uses type, which only a sandbox offers",
        ),
        ("match 1:\n    case 1:\n        x = 3\n", "uses pattern matching"),
        ("@print\nclass X: pass\n", "defines a class"),
    ],
)  # fmt: skip
def test_what_a_right_program_may_need_is_refused_not_wrong(runner, program, reason) -> None:
    """Attributes, imports and classes are never run; the answer stays unscored, with the reason."""
    found = runner.run(program, TESTS)
    assert isinstance(found, Refused)
    assert reason in found.reason
    assert found.reason.endswith(f"needs a sandbox; {INSTALL}")


@pytest.mark.parametrize(
    "body",
    [
        "next(iter([a + b]))", "sum(*[[a, b]])", "len(bin(a + b)) and a + b",
        "sum(frozenset([a + b]))", "[x + y for x, y in zip(*[[a], [b]])][0]", "max(*[a + b, 0])",
        "int(repr(a + b))", "[a, b, a + b][slice(2, 3)][0]",
    ],
)  # fmt: skip
def test_usual_names_and_starred_arguments_are_offered(runner, body) -> None:
    """A right program that uses them passes."""
    assert runner.run(f"def f(a, b):\n    return {body}\n", TESTS) == Ran(None)


@pytest.mark.parametrize(
    "program",
    [
        "def f(a, b):\n    return __import__('os')\n",
        "def f(a, b):\n    return __builtins__\n",
        "_getattr_ = print\n" + SIMPLE,
        "def f(a, b):\n    exec('import os')\n",
    ],
)
def test_no_way_around_the_guards(runner, program) -> None:
    """Private names, the guards' own names and `exec` are refused or unknown, never run."""
    result = runner.run(program, TESTS)
    assert isinstance(result, Refused) or result.problem is not None


def test_assertions_cannot_be_talked_out_of(runner) -> None:
    """A program that ends quietly before its tests has not passed them."""
    for program in ("raise AssertionError\n", "f = None\n", "exit()\n", "quit\n"):
        result = runner.run(program, TESTS)
        assert isinstance(result, Ran)
        assert result.problem is not None


def test_unusable_tests_do_not_blame_the_program(runner) -> None:
    """Tests that do not parse, or need more than the language, leave the answer unscored."""
    assert runner.run(SIMPLE, "assert f(1, 2 == 3\n") == Refused(
        "the reference's tests do not parse: syntax error in line 1: '(' was never closed"
    )
    assert runner.run(SIMPLE, "import math\nassert f(1, 2) == 3\n") == Refused(
        f"the reference's test imports a module: needs a sandbox; {INSTALL}"
    )


def test_a_program_leaves_nothing_to_the_next(runner) -> None:
    """Each program starts from nothing: names and changes of an earlier one are gone."""
    assert runner.run("secret = 1\n" + SIMPLE, TESTS) == Ran(None)
    peeking = runner.run("def f(a, b):\n    return secret + b\n", TESTS)
    assert peeking == Ran("tests: NameError: name 'secret' is not defined")


def test_huge_programs_are_not_read(runner) -> None:
    """A program of more than 200,000 characters is wrong unread."""
    assert runner.run("x = 1\n" * 40_000, TESTS) == Ran("longer than 200000 characters")


@pytest.mark.slow
def test_a_killed_worker_is_replaced(runner) -> None:
    """When the worker dies between programs a new one takes over."""
    assert runner.run(SIMPLE, TESTS) == Ran(None)
    runner._process.kill()
    runner._process.wait()
    assert runner.run(SIMPLE, TESTS) == Ran(None)


def test_one_worker_runs_160_programs(runner) -> None:
    """The start-up is paid once."""
    assert runner.run(SIMPLE, TESTS) == Ran(None)
    worker = runner._process
    assert {runner.run(SIMPLE, TESTS) for _ in range(159)} == {Ran(None)}
    assert runner._process is worker


def test_close_ends_the_worker() -> None:
    """After `close`, twice, no process is left; the next program starts another."""
    own = RestrictedRunner()
    own.run(SIMPLE, TESTS)
    process = own._process
    own.close()
    own.close()
    assert process.poll() is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_the_worker_sees_nothing_of_our_environment() -> None:
    """Isolated mode and a bare environment: no variable of ours reaches the worker."""
    code = (
        "from evals.evaluators.code.restricted import RestrictedRunner as R;"
        "r=R();r.run('x=1','assert x');"
        "print(open(f'/proc/{r._process.pid}/environ').read());r.close()"
    )
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={"SECRET_TOKEN": "hush", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "PYTHONIOENCODING" in run.stdout
    assert "hush" not in run.stdout


def test_a_prelude_is_completed_and_a_whole_function_replaces_it() -> None:
    """The answer continues the prelude, unless it defines the function itself; fences go."""
    reference = CodeTests("f", 'def f(a, b):\n    """Add."""\n', TESTS)
    body = "    return a + b\n"
    assert program_of(reference, body) == reference.prelude + body
    assert program_of(reference, f"```python\n{SIMPLE}```") == SIMPLE.rstrip("\n")


def test_code_is_scored_through_the_evaluator(generation_of) -> None:
    """Right code is 1, wrong code 0, refused code unscored."""
    reference = (
        '{"kind": "tests", "entry_point": "f", "prelude": "def f(a, b):\\n", '
        '"tests": "assert f(1, 2) == 3"}'
    )
    evaluator = TaskCompletion(RestrictedRunner())
    scores = [
        evaluator.score(generation_of(answer=answer, reference=reference))
        for answer in ("    return a + b", "    return a", "    return a.real + b")
    ]
    evaluator.close()
    assert [(s.value, s.label, s.unscored_reason) for s in scores] == [
        (1.0, "tests: correct", None),
        (0.0, "tests: wrong", None),
        (None, None, f"the program uses attribute access: needs a sandbox; {INSTALL}"),
    ]
