"""The sandbox for a model's code: right and wrong programs, and that hostile ones are contained."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from waiting import until

from evals.evaluators import TaskCompletion
from evals.evaluators.code import process_bound, sandbox
from evals.evaluators.code.process_bound import MAX_PROCESSES, NoProcessBoundError, ProcessBound
from evals.evaluators.code.program import Ran, Refused
from evals.evaluators.code.restricted import RestrictedRunner
from evals.evaluators.code.sandbox import INSTALL, ResourceLimits, SandboxRunner

TESTS = "assert f(1, 2) == 3\nassert f(2, 2) == 4\n"
RIGHT = "def f(a, b):\n    return a + b\n"
ENDED = Ran("ended before its tests did (it may use 2 s of work)")


@pytest.fixture(scope="module", autouse=True)
def _a_sandbox() -> None:
    """Skip if there is none, but fail in CI."""
    if (reason := sandbox.why_not()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def runner() -> SandboxRunner:
    return SandboxRunner(ResourceLimits(cpu_s=2, wall_s=100))  # the wall is for a busy machine


@pytest.mark.parametrize(
    "program",
    [
        RIGHT,
        "import math\nclass A:\n    def add(self, a, b):\n        return a + b\nf = A().add\n",
        (
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    a: int\n"
            "def f(a, b):\n    return P(a).a + b\n"
        ),
        "import numpy\ndef f(a, b):\n    return int(numpy.add(a, b))\n",
        (
            "import threading\ndef f(a, b):\n    out = []\n"
            "    t = threading.Thread(target=lambda: out.append(a + b))\n    t.start(); t.join()\n"
            "    return out[0]\n"
        ),
        "import subprocess\nsubprocess.run(['/bin/true'], check=True)\n" + RIGHT,
        "open('/tmp/x', 'w').write('1')\n" + RIGHT,
        "print('x' * 10**6)\n" + RIGHT,
    ],
)
def test_right_programs_pass(runner, program) -> None:
    """All of Python: imports, classes, packages, threads, processes, files of its own."""
    assert runner.run(program, TESTS) == Ran(None)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("def f(a, b):\n    return a - b\n", "tests: failed: assert f(1, 2) == 3"),
        ("def f(a, b)\n    return a\n", "syntax error in line 1: expected ':'"),
        ("", "tests: NameError: name 'f' is not defined"),
        ("raise ValueError('x' * 10**6)\n", "program: ValueError: " + "x" * 200),
        ("import sys\nsys.exit(0)\n", "program: SystemExit: 0"),
        ("x = [0] * 10**10\n", "program: MemoryError"),
        ("open('/usr/x', 'w')\n", "program: OSError: [Errno 30] Read-only file system: '/usr/x'"),
        ("open('/x', 'w')\n", "program: OSError: [Errno 30] Read-only file system: '/x'"),
        (
            "import socket\nsocket.create_connection(('127.0.0.1', 22), 1)\n",
            "program: ConnectionRefusedError: [Errno 111] Connection refused",
        ),
        (
            "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)\n",
            "program: OSError: [Errno 101] Network is unreachable",
        ),
        (
            "with open('/tmp/x', 'wb') as file:\n    file.write(b'x' * 17 * 2**20)\n",
            "program: OSError: [Errno 27] File too large",
        ),
        (
            "for i in range(9):\n    open(f'/tmp/{i}', 'wb').write(b'x' * 2**22)\n",
            "program: OSError: [Errno 28] No space left on device",
        ),
    ],
)
def test_wrong_programs_fail_with_the_reason(runner, program, problem) -> None:
    """What a program raised, or which test it failed, is said."""
    assert runner.run(program, TESTS) == Ran(problem)


@pytest.mark.parametrize(
    "program",
    [
        "import os\nos._exit(0)\n",
        "import os\nprint('started')\nos.write(1, b'ok')\nos._exit(0)\n",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
        "import os\nos.kill(1, 9)\nos._exit(0)\n",
        "while True:\n    pass\n",
        "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n",
        (
            "import os\nfor fd in range(64):\n    try:\n        os.write(fd, b'passed')\n"
            "    except OSError:\n        pass\nos._exit(0)\n"
        ),
        "import os\nos.execv('/bin/true', ['true'])\n",
    ],
)
def test_what_ends_before_its_tests_has_not_passed_them(runner, program) -> None:
    """Exit code 0, kills, endless loops and output, and forged replies count as failed."""
    assert runner.run(program, TESTS) == ENDED


def test_a_program_that_sleeps_is_stopped() -> None:
    """A program that does nothing for long ends at the wall's limit."""
    quick = SandboxRunner(ResourceLimits(wall_s=1))
    assert quick.run("import time\ntime.sleep(60)\n", TESTS) == Ran(
        "ran past its time (1 s in all)"
    )


def test_the_nonce_is_nowhere_in_the_process(runner) -> None:
    """No frame, object, argument or variable holds a nonce while the program runs."""
    program = (
        "import gc, re, sys, os\n"
        "found = []\nframe = sys._getframe()\n"
        "while frame:\n    found.append(repr(frame.f_locals)); frame = frame.f_back\n"
        "found += [repr(sys.argv), repr(dict(os.environ))]\n"
        "found += [repr(o) for o in gc.get_objects() if isinstance(o, (bytes, str, dict, list))]\n"
        "seen = re.findall(r'\\b(?=[0-9a-f]*[a-f])[0-9a-f]{32}\\b', ' '.join(found))\n"
        "def f(a, b):\n    return a + b if not seen else 0\n"
    )
    assert runner.run(program, TESTS) == Ran(None)


def test_the_sandbox_holds_nothing_of_the_machine(runner) -> None:
    """No process of ours, no environment, no home, no capability, and nobody as the user."""
    tests = (
        "import os\n"
        "assert os.getuid() == os.geteuid() == 65534\n"
        "assert not os.path.exists('/proc/1')\n"
        "assert not os.path.exists('/etc/passwd')\n"
        f"assert not os.path.exists({str(Path(__file__))!r})\n"
        "assert set(os.environ) <= {'HOME', 'LANG', 'PATH', 'PWD', 'PYTHONDONTWRITEBYTECODE',\n"
        "    'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'LD_LIBRARY_PATH'}\n"
        "import ctypes\n"
        "assert ctypes.CDLL(None, use_errno=True).unshare(0x10000000) == -1\n"
        "assert ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None) == -1\n"
    )
    assert runner.run(RIGHT, tests) == Ran(None)


def test_a_fork_bomb_stays_within_its_bound() -> None:
    """Not even then is there a process more than the bound; and nothing of it is left."""
    runner = SandboxRunner(ResourceLimits(wall_s=2, cpu_s=1))
    counting = (
        "import os, time\npids = []\n"
        "try:\n    while len(pids) < 100:\n        pid = os.fork()\n"
        "        if pid == 0:\n            time.sleep(9)\n            os._exit(0)\n"
        "        pids.append(pid)\nexcept OSError as exc:\n    pass\n"
        f"assert 0 < len(pids) < {MAX_PROCESSES}, len(pids)\n"
    )
    # The bound is seen to hold before anything is tried that would not end by itself.
    assert runner.run("x = 1", counting) == Ran(None)
    bombed = runner.run("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n"
                        "        pass\n", TESTS)  # fmt: skip
    assert isinstance(bombed, Ran)
    assert bombed.problem is not None
    assert runner.run(RIGHT, TESTS) == Ran(None)


@pytest.mark.parametrize(
    "program",
    [
        "x = 'x'\nwhile True:\n    x = x + x\n",
        (
            "import os\nfor _ in range(10):\n    if os.fork() == 0:\n        break\n"
            "x = bytearray(400 * 2**20)\nimport time\ntime.sleep(5)\n"
        ),
        "import mmap\nxs = []\nwhile True:\n    xs.append(mmap.mmap(-1, 2**26))\n",
    ],
)
def test_memory_bombs_are_contained(runner, program) -> None:
    """One process, or many together, run out of their own memory, and only of that."""
    result = runner.run(program, TESTS)
    assert isinstance(result, Ran)
    assert result.problem is not None
    assert runner.run(RIGHT, TESTS) == Ran(None)


def test_100_at_once(runner) -> None:
    """Programs at the same time do not touch one another, and leave no group or process behind."""
    programs = [RIGHT, "import os\nos._exit(0)\n", "def f(a, b):\n    return 0\n", RIGHT] * 25
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda program: runner.run(program, TESTS), programs))
    wrong = Ran("tests: failed: assert f(1, 2) == 3")
    assert results == [Ran(None), ENDED, wrong, Ran(None)] * 25
    for folder in process_bound._controllers().values():
        assert list(folder.glob(f"draftgate-{os.getpid()}-*")) == []


def test_unusable_tests_do_not_blame_the_program(runner) -> None:
    """Tests that do not parse, or are none, leave the answer unscored."""
    assert runner.run(RIGHT, "assert f(1, 2 == 3\n") == Refused(
        "the reference's tests do not parse: syntax error in line 1: '(' was never closed"
    )
    assert runner.run(RIGHT, "# nothing\n") == Refused(
        "the reference's tests test nothing: they hold no statement"
    )


def test_without_bubblewrap_code_is_refused_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, generation_of
) -> None:
    """Nothing is run bare: the restricted language judges what it can and refuses the rest."""
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.why_not.cache_clear()
    try:
        assert sandbox.why_not() == f"bubblewrap is not installed: {INSTALL}"
        evaluator = TaskCompletion()
        reference = (
            '{"kind": "tests", "entry_point": "f", "prelude": "", "tests": "assert f(1, 2) == 3"}'
        )
        scores = [
            evaluator.score(generation_of(answer=answer, reference=reference))
            for answer in (RIGHT, "import os\n" + RIGHT)
        ]
        assert isinstance(evaluator._runner, RestrictedRunner)
        evaluator.close()
        assert [(s.value, s.unscored_reason, s.version) for s in scores] == [
            (1.0, None, "5+restricted"),
            (None, f"the program imports a module: needs a sandbox; {INSTALL}", "5+restricted"),
        ]
    finally:
        sandbox.why_not.cache_clear()


def test_an_old_bubblewrap_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that cannot forbid namespaces inside the sandbox is not used."""
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.6.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sandbox.NoSandboxError) as caught:
        SandboxRunner()
    assert str(caught.value) == f"bubblewrap 0.6.1 is too old: {INSTALL}"


def test_root_without_any_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither a control group nor another user can bound processes, nothing is run."""
    monkeypatch.setattr(process_bound, "_controllers", dict)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(NoProcessBoundError, match="evaluate as another user than root"):
        ProcessBound(readable_by_all=False)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that every user can read, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("kind", ["uid", "rlimit"])
def test_the_other_bounds_hold_too(kind: str, open_folder: Path) -> None:
    """Under a user of its own, and for whoever is not root, forks end at the bound as well."""
    system = shutil.which("python3.11", path="/usr/bin:/usr/local/bin")
    if os.geteuid() != 0 or system is None:
        pytest.skip("wanted root, and a Python that every user can read")
    folder = open_folder / "evals"
    root = Path(sandbox.__file__).parents[2]
    for part in ("__init__.py", "errors.py", "evaluators/answers.py", "evaluators/reference.py"):
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / part, folder / part)
    (folder / "evaluators/__init__.py").touch()
    shutil.copytree(root / "evaluators/code", folder / "evaluators/code")
    collector = open_folder / "collector"
    shutil.copytree(root.parent / "collector/contract", collector / "contract")
    (collector / "__init__.py").touch()
    code = (
        "from evals.evaluators.code import process_bound, sandbox\n"
        f"if {kind!r} == 'uid': process_bound._controllers = dict\n"
        "runner = sandbox.SandboxRunner(sandbox.ResourceLimits(wall_s=5, cpu_s=2))\n"
        "assert runner.bound == " + repr(kind) + ", runner.bound\n"
        "count = '''import os, time\\npids = []\\ntry:\\n    while len(pids) < 40:\\n"
        "        pid = os.fork()\\n        if pid == 0:\\n            time.sleep(9)\\n"
        "            os._exit(0)\\n        pids.append(pid)\\nexcept OSError:\\n    pass\\n"
        "assert 0 < len(pids) < 16, len(pids)\\n'''\n"
        "print(runner.run('x = 1', count), runner.run('def f(): return 1', 'assert f() == 2'))\n"
    )
    as_user = {"user": 65534, "group": 65534, "extra_groups": ()} if kind == "rlimit" else {}
    run = subprocess.run(
        [system, "-c", code],
        env={"PYTHONPATH": str(open_folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        cwd=open_folder,
        **as_user,
    )
    assert run.stderr == ""
    wanted = (Ran(None), Ran("tests: failed: assert f() == 2"))
    assert run.stdout.strip() == " ".join(map(repr, wanted))


def test_a_killed_evaluation_leaves_no_program_running() -> None:
    """With the process that asked, SIGKILLed, its sandboxes end."""
    marker = f"sleep {os.getpid()}.5"
    program = f"import subprocess\nsubprocess.run(['/bin/sh', '-c', 'exec {marker}'])\n"
    code = (
        "from evals.evaluators.code.sandbox import *\n"
        f"SandboxRunner(ResourceLimits(wall_s=60)).run({program!r}, 'assert True')\n"
    )
    root = Path(sandbox.__file__).parents[3]
    asking = subprocess.Popen([sys.executable, "-c", code], cwd=root)
    until(lambda: marker in _commands())
    asking.kill()
    asking.wait()
    until(lambda: marker not in _commands())
    SandboxRunner()  # sweeps the group that the killed process left
    for folder in process_bound._controllers().values():
        assert list(folder.glob(f"draftgate-{asking.pid}-*")) == []


def _commands() -> str:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text().replace("\0", " "))
        except OSError:  # it has ended
            continue
    return "\n".join(found)
