"""What one arm of a run answered: how many, how many failed, and what became of its drafts."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from collector.contract import Generation, acceptance_collapsed, violations


@dataclass(slots=True)
class ArmCounts:
    """Sums over the answers of this attempt."""

    generations: int = 0
    failed: int = 0
    error_type: str | None = None
    """Of its latest failure."""
    drafts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Accepted and drafted tokens of greedy and of sampled answers, as far as counts are usable."""

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
        accepted, drafted = self.drafts.get(kind, (0, 0))
        self.drafts[kind] = (accepted + spec.accepted_tokens, drafted + spec.draft_tokens)

    @property
    def mostly_failed(self) -> bool:
        """Say whether more answers failed than not."""
        return 2 * self.failed > self.generations

    @property
    def suspicions(self) -> Iterator[str]:
        """Name the kinds of answers in which next to no draft token was accepted."""
        for kind, (accepted, drafted) in sorted(self.drafts.items()):
            if acceptance_collapsed(accepted, drafted):
                share = accepted / drafted
                yield (
                    f"acceptance collapsed in {kind} answers: {share:.1%} of {drafted:,} draft "
                    "tokens were accepted"
                )
