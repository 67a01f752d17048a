"""Compare two rollouts' answers to the same prompts and seeds, token by token.

A patched release beside the unpatched one: the first difference is the fault's, for both draw the
same random numbers on the same machine.

    python -m benchmarks.engine_audit.same_seeds ROLLOUT OTHER --database sqlite:///...
"""

import argparse
from itertools import takewhile

from collector.client import Client
from collector.contract import Arm
from evals.lossless.sampled_answers import given_tokens


def main() -> int:
    """Print, for each arm, how many answers differ and after how many tokens the first does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rollouts", nargs=2)
    parser.add_argument("--database", default="sqlite:///build/engine_audit/audit.db")
    given = parser.parse_args()
    with Client.opened(None, given.database) as client:
        for arm in Arm:
            one, other = (_answers(client, rollout, arm) for rollout in given.rollouts)
            print(f"{arm.value}: {_difference(one, other)}")
    return 0


def _answers(client: Client, rollout: str, arm: Arm) -> dict[str, list[int]]:
    found = client.generations(rollout, arm=arm, content=True)
    return {one.prompt_id: ids for one in found if one.prompt_id and (ids := given_tokens(one))}


def _difference(one: dict[str, list[int]], other: dict[str, list[int]]) -> str:
    both = [(one[prompt], other[prompt]) for prompt in one if prompt in other]
    common = [
        len([*takewhile(lambda pair: pair[0] == pair[1], zip(*pair, strict=False))])
        for pair in both
    ]
    differ = [i for i, (a, b) in enumerate(both) if a != b]
    if not differ:
        return f"all of {len(both)} answers are the same"
    before = sum(common[: differ[0] + 1])
    places = sorted(common[i] for i in differ)
    return (
        f"{len(differ)} of {len(both)} answers differ, the first after {before} equal tokens; "
        f"median place of the first difference: {places[len(places) // 2]}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
