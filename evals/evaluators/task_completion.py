"""Judge whether the answer is correct, by the rule for its reference's kind."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import ClassVar

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, answer_text
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.code import sandbox
from evals.evaluators.code.program import ProgramRunner, Refused, program_of, stdio_tests
from evals.evaluators.code.restricted import RestrictedRunner
from evals.evaluators.conversation import answered_calls, history
from evals.evaluators.reference import (
    Actions,
    CodeTests,
    EndState,
    ExactText,
    JsonParts,
    JsonValue,
    Number,
    QaAnswers,
    Reference,
    Rubric,
    StdioCases,
    ToolCalls,
    UnusableReferenceError,
)
from evals.evaluators.reference_reading import parse
from evals.evaluators.rules import agent, json_values, text, tool_calls
from evals.evaluators.rules.outcome import RuleResult

_NEEDS_JUDGE = (
    "the reference is a rubric, which needs a judge: `draftgate evaluate --evaluator judge-task`"
)

_Rule = Callable[[Generation, str, Reference], RuleResult]


class TaskCompletion:
    """How well the answer meets its reference: 1 or 0; only `f1` gives values between them.

    The label names the rule and its result: `tests: correct`, `qa exact: wrong`. Applies to
    generations with a reference. Owns the code runner, which it starts for the first program.
    """

    name = "reference"
    metric = "task_completion"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.REFERENCE})

    def __init__(self, runner: ProgramRunner | None = None) -> None:
        """Without `runner`, code runs in a sandbox if possible, else in the restricted language."""
        self._runner = runner

    @property
    def version(self) -> str:
        """The version; it differs without a sandbox, where more answers stay unscored.

        So those answers are scored again on a machine that has a sandbox. The first call in a
        process tries to start one.
        """
        return "5" if sandbox.why_not() is None else "5+restricted"

    def score(self, generation: Generation) -> Score | None:
        """Compare the answer with its reference."""
        reference_text = generation.content.reference if generation.content else None
        if reference_text is None:
            return None
        if (answer := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        try:
            reference = parse(reference_text)
            found = self._apply_rule(generation, answer, reference)
        except UnusableReferenceError as exc:
            return unscored(self, generation, str(exc))
        if isinstance(found, Refused):
            return unscored(self, generation, found.reason)
        kind = rule_of(reference)
        right = "correct" if found.value == 1.0 else "wrong" if found.value == 0.0 else "partly"
        label = f"{kind}: {right}"
        return scored(self, generation, found.value, label=label, explanation=found.problem)

    def close(self) -> None:
        """Close the code runner."""
        if self._runner is not None:
            self._runner.close()

    def _apply_rule(
        self, generation: Generation, answer: str, reference: Reference
    ) -> RuleResult | Refused:
        if isinstance(reference, Rubric):
            return Refused(_NEEDS_JUDGE)
        if isinstance(reference, CodeTests):
            return self._run(program_of(reference, answer), reference.tests)
        if isinstance(reference, StdioCases):
            return self._run("", stdio_tests(reference, answer))
        return _RULES[type(reference)](generation, answer, reference)

    def _run(self, program: str, tests: str) -> RuleResult | Refused:
        if self._runner is None:
            fallback = sandbox.why_not() is not None
            self._runner = RestrictedRunner() if fallback else sandbox.SandboxRunner()
        result = self._runner.run(program, tests)
        return result if isinstance(result, Refused) else RuleResult.of(result.problem)


def rule_of(reference: Reference) -> str:
    """Name the rule that judges by this reference."""
    if isinstance(reference, QaAnswers):
        return f"qa {reference.match}"
    if isinstance(reference, Actions):
        return "action sequence" if reference.sequence else "actions"
    return _NAMES[type(reference)]


_NAMES = {
    ExactText: "exact text",
    JsonValue: "JSON value",
    JsonParts: "JSON parts",
    CodeTests: "tests",
    StdioCases: "stdio cases",
    Number: "number",
    ToolCalls: "tool calls",
    EndState: "end state",
    Rubric: "rubric",
}

# mypy cannot see that each rule is called with its own kind of reference.
_RULES: dict[type, _Rule] = {
    ExactText: lambda _, answer, reference: text.exact(answer, reference),  # type: ignore[arg-type]
    QaAnswers: lambda _, answer, reference: text.qa(answer, reference),  # type: ignore[arg-type]
    Number: lambda _, answer, reference: text.number(answer, reference),  # type: ignore[arg-type]
    JsonValue: lambda _, answer, reference: json_values.value(answer, reference),  # type: ignore[arg-type]
    JsonParts: lambda _, answer, reference: json_values.parts(answer, reference),  # type: ignore[arg-type]
    ToolCalls: lambda generation, _, reference: tool_calls.calls(
        answered_calls(generation),
        reference,  # type: ignore[arg-type]
    ),
    Actions: lambda generation, _, reference: agent.actions(
        history(generation),
        reference,  # type: ignore[arg-type]
    ),
    EndState: lambda generation, _, reference: agent.end_state(
        history(generation),
        reference,  # type: ignore[arg-type]
    ),
}
