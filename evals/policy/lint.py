"""Check policy files; name the line at fault."""

import re
from pathlib import Path
from typing import NamedTuple

import yaml

from evals import policy as policies
from evals.errors import PolicyError

_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[]+)")


class PolicyProblem(NamedTuple):
    """The first error in a policy file."""

    file: Path
    line: int | None
    """Counted from 1; None if no line is at fault."""
    words: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.words}"


def problem(file: Path) -> PolicyProblem | None:
    """Return the first problem of a policy file; None if the gate can use it."""
    try:
        policies.load(file)
    except PolicyError as exc:
        line = exc.line if not exc.key else line_of(policies.text_of(file), exc.key)
        words = str(exc).removeprefix(f"{file}: ")
        return PolicyProblem(file, line, re.sub(r"^line \d+, ", "", words))
    return None


def line_of(text: str, key: str) -> int | None:
    """Return the line of a key's path in a YAML text; of the nearest one above it that exists."""
    node, line = yaml.compose(text, Loader=yaml.SafeLoader), None
    for index, name in _STEP.findall(key):
        if isinstance(node, yaml.MappingNode) and name:
            found = next(((k, v) for k, v in node.value if k.value == name), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
            node = node.value[int(index)]
            line = node.start_mark.line + 1
        else:
            break
    return line
