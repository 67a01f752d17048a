"""Counts of one arm of a run: answers, failures, and accepted and proposed draft tokens."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from collector.contract import Generation, acceptance_collapsed, violations


@dataclass(frozen=True, slots=True)
class DraftCounts:
    """Draft tokens of one kind of answers; answers with unusable counts are left out."""

    accepted_tokens: int = 0
    draft_tokens: int = 0


@dataclass(slots=True)
class ArmCounts:
    """Sums over the answers of one arm in this attempt."""

    generations: int = 0
    failed: int = 0
    error_type: str | None = None
    """The `error.type` of the latest failure."""
    errors: dict[str, str] = field(default_factory=dict)
    """By `error.type`: the words of the latest request that failed so."""
    drafts: dict[str, DraftCounts] = field(default_factory=dict)
    """By kind of answer: `greedy` or `sampled`."""

    def add(self, generation: Generation) -> None:
        """Count one answer."""
        self.generations += 1
        self.failed += generation.error_type is not None
        self.error_type = generation.error_type or self.error_type
        spec = generation.speculation
        if spec is None or spec.accepted_tokens is None or spec.draft_tokens is None:
            return
        if violations(generation):
            return
        kind = "sampled" if generation.temperature else "greedy"
        known = self.drafts.get(kind, DraftCounts())
        self.drafts[kind] = DraftCounts(
            known.accepted_tokens + spec.accepted_tokens, known.draft_tokens + spec.draft_tokens
        )

    @property
    def last_error(self) -> str:
        """The latest failure's `error.type`, with its words if the request itself failed."""
        kind = str(self.error_type)
        return f"{kind}: {self.errors[kind]}" if kind in self.errors else kind

    @property
    def mostly_failed(self) -> bool:
        """Whether more than half of the answers failed."""
        return 2 * self.failed > self.generations

    @property
    def suspicions(self) -> Iterator[str]:
        """One sentence for each kind of answers whose draft tokens were almost all rejected."""
        for kind, drafts in sorted(self.drafts.items()):
            if acceptance_collapsed(drafts.accepted_tokens, drafts.draft_tokens):
                share = drafts.accepted_tokens / drafts.draft_tokens
                yield (
                    f"acceptance collapsed in {kind} answers: {share:.1%} of "
                    f"{drafts.draft_tokens:,} draft tokens were accepted"
                )
