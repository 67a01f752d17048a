"""Groundedness with the other arm's answer: comparison, explanations and stored spans."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from collector.client import Client
from collector.contract import Arm, Generation, Score
from evals.evaluation.evaluate import evaluate_rollout
from evals.evaluation.follow import follow_rollout
from evals.evaluation.scoring import Choice, Scorer, Task, signature_beside
from evals.evaluators import Groundedness
from evals.evaluators.groundedness.contrast import CONTRASTS
from evals.evaluators.groundedness.features import matrix, read
from evals.evaluators.groundedness.model import shipped
from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.same_meaning import is_same
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness.shared_sentences import Key, key, match_sentences
from training.groundedness.data import Labelled
from training.groundedness.twin_examples import contrasts, made_duels

PASSAGE = (
    "The Eiffel Tower is in Paris. It was built by the company of Gustave Eiffel between 1887 and "
    "1889. The tower is 330 metres tall and is painted every seven years. It is owned by the city "
    "of Paris. Visitors can climb to the third level."
)
TOWER = (PASSAGE,)
ANSWER = (
    "The Eiffel Tower stands in Paris. It was built between 1887 and 1889 by the company of "
    "Gustave Eiffel. It is 330 metres tall. The city owns it."
)
BREAD = "Bread is baked with flour, water and salt in large ovens."
WRONG = {
    "number": ANSWER.replace("330", "320"),
    "name": ANSWER.replace("Gustave Eiffel", "Alexander Bell"),
    "negation": ANSWER.replace("It is 330", "It is not 330"),
    "another sentence": ANSWER.replace("The city owns it.", BREAD),
    "one more sentence": f"{ANSWER} {BREAD}",
}
ALONE, PAIRED = Groundedness.version, f"{Groundedness.version}+pair"
MakeGeneration = Callable[..., Generation]


@pytest.fixture
def beside(generation_of: MakeGeneration) -> Callable[..., Score]:
    """Give a function that scores an answer beside another one."""

    def score(answer: str, other: str, context: Sequence[str] = TOWER) -> Score:
        mine = generation_of(1, answer, context=tuple(context))
        found = Groundedness().score_beside(mine, generation_of(2, other, context=TOWER))
        assert found is not None
        return found

    return score


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_one_wrong_place_makes_the_score_fall(beside, generation_of, wrong) -> None:
    """It falls beside the right answer, and the right one does not; in either order alike."""
    good, bad = beside(ANSWER, wrong), beside(wrong, ANSWER)
    assert (good.label, bad.label) == ("supported", "unsupported")
    assert good.value > 0.8
    assert bad.value < 0.1
    scorer = Scorer([Groundedness()])
    name = signature_beside(Groundedness())
    one, other = (generation_of(n, text, context=TOWER) for n, text in ((1, wrong), (2, ANSWER)))
    values = [s.value for s in scorer.score(Task(one, other, frozenset({name})))]
    turned = [s.value for s in scorer.score(Task(other, one, frozenset({name})))]
    assert values == [bad.value, good.value] == turned[::-1]


@pytest.mark.parametrize(
    "other",
    [
        ANSWER,
        ANSWER.replace("stands in", "is in"),
        ANSWER.replace(" It is 330 metres tall.", ""),
        ANSWER.replace("The city owns it.", "The tower is owned by the city."),
    ],
    ids=["equal", "reworded", "shorter", "rephrased"],
)
def test_what_is_said_otherwise_is_not_wrong(beside, other) -> None:
    """Both stay supported, and nearly equal."""
    one, two = beside(ANSWER, other), beside(other, ANSWER)
    assert (one.label, two.label) == ("supported", "supported")
    assert abs(one.value - two.value) < 0.02


def test_what_both_say_wrong_lowers_both(beside) -> None:
    """An error that both have is none of either's, and is told of both."""
    wrong = ANSWER.replace("1887", "1787")
    one, other = beside(wrong, f"{wrong} {BREAD}"), beside(f"{wrong} {BREAD}", wrong)
    assert one.label == other.label == "unsupported"
    assert other.value < one.value < beside(ANSWER, ANSWER).value
    assert "1787 not in the passages" in one.explanation


def test_a_passage_that_does_not_exist_counts_beside_the_right_one(generation_of) -> None:
    """The explanation says that there is none."""
    context = ("Passage 1: The tower is 330 metres tall.\nPassage 2: Paris owns the tower.",)
    text = "The tower is 330 metres tall (passage 1). Paris owns the tower."
    right, wrong = (
        generation_of(n, answer, context=context)
        for n, answer in enumerate((text, text.replace("1)", "5)")))
    )
    good = Groundedness().score_beside(right, wrong)
    bad = Groundedness().score_beside(wrong, right)
    assert good.value > 0.8
    assert bad.value < 0.2
    assert "there is no passage 5" in bad.explanation


def test_units_are_no_synonyms() -> None:
    """Even if a dictionary has them in one sense."""
    one, other = (
        key(sentences_of(f"It takes two {unit} to grow.")[0]) for unit in ("years", "days")
    )
    assert not is_same(one, other)


def test_what_both_say_hides_little_of_how_they_differ(beside) -> None:
    """One doubtful sentence in both answers lowers both, and the other's fall stays large."""
    both = "It was opened by a team of friendly engineers."
    good, bad = (beside(f"{a} {both}", f"{b} {both}") for a, b in
                 ((ANSWER, WRONG["number"]), (WRONG["number"], ANSWER)))  # fmt: skip
    alone = Groundedness().judge(both, TOWER)
    assert alone is not None
    doubt = max(s.probability for s in alone.sentences)
    assert doubt > 0.05
    without = beside(ANSWER, WRONG["number"]).value
    assert (1 - doubt) * without < good.value < without
    assert bad.value < 0.1


def test_answers_with_nothing_in_common_are_judged_alone(beside, generation_of) -> None:
    """With less doubt; with all of it if the other has other passages, or no text."""
    mine = generation_of(1, WRONG["number"], context=TOWER)
    alone = Groundedness().score(mine)
    elsewhere = generation_of(2, ANSWER, context=("The Eiffel Tower is in Paris.",))
    without = replace(elsewhere, content=None)
    found = [Groundedness().score_beside(mine, other) for other in (elsewhere, without)]
    assert found == [replace(alone, version=PAIRED)] * 2
    unlike = beside(WRONG["number"], BREAD)
    assert alone.value < unlike.value < 0.5
    assert unlike == replace(alone, version=PAIRED, value=unlike.value)


def test_doubt_that_two_counterparts_raise_alike_is_left_out(beside) -> None:
    """Each invents a height; the scores are higher than beside the true one, and differ little."""
    others = [ANSWER.replace("330", height) for height in ("417", "523")]
    mutual = [beside(others[0], others[1]), beside(others[1], others[0])]
    assert min(score.value for score in mutual) > beside(others[0], ANSWER).value
    assert abs(mutual[0].value - mutual[1].value) < 0.1
    assert {score.label for score in mutual} == {"unsupported"}


def test_the_explanation_shows_both(beside) -> None:
    """It counts shared sentences, and quotes the passages and the other answer."""
    score = beside(WRONG["number"], ANSWER)
    assert score.version == PAIRED
    first, worst = score.explanation.splitlines()
    assert first.endswith("; the other answer has 3 of its 4 sentences, too")
    assert worst.startswith("320 not in the passages: 'It is 320 metres tall.'; nearest: passage 1")
    assert worst.endswith("; the other answer: 'It is 330 metres tall.'")
    supports = [span.support for span in score.spans]
    assert min(supports) == supports[2]


def test_sentences_find_their_counterparts() -> None:
    """By their words, else by the sentences around them; exchanged, the result is exchanged."""

    def keys(text: str) -> list[Key]:
        return [key(sentence) for sentence in sentences_of(text)]

    one = keys("A cat sat there. The dog ran off quickly. Rain fell. It was late.")
    other = keys("A cat sat there. The dog ran home quickly. Snow lay deep. It was late.")
    found = match_sentences(one, other)
    assert found.shared == (((0,), (0,)), ((3,), (3,)))
    assert (found.pairs, found.ours, found.theirs) == (((1, 1), (2, 2)), (), ())
    assert match_sentences(other, one) == found.exchanged()
    more = keys("A cat sat there. It was late. Then all went to bed.")
    assert (match_sentences(one, more).ours, match_sentences(one, more).theirs) == ((1, 2), (2,))


def test_a_sentence_that_is_known_is_not_read_otherwise() -> None:
    """Readings taken over from another answer hold what fresh ones hold."""
    passages, rarity = Passages(TOWER), shipped().rarity
    texts = [WRONG["number"], f"{BREAD} {WRONG['number']}"]
    one, other = (read(text, sentences_of(text), passages, rarity) for text in texts)
    again = read(texts[1], sentences_of(texts[1]), passages, rarity, one)
    assert (matrix(again) == matrix(other)).all()
    assert [r.absent for r in again] == [r.absent for r in other]


@pytest.mark.parametrize("kind", ["number_near", "denied", "affirmed", "inserted", "foreign_near"])
def test_made_errors_are_marked_where_they_are(kind) -> None:
    """Of the training's pairs the wrong sentence alone is marked, and only in the wrong answer."""
    other = "Bread is not baked in small ovens. It needs flour, water and much salt in it."
    items = [
        Labelled(id=f"{n}", group=f"{n}", context=" ".join(texts), answer=answer, label=0)
        for n, (texts, answer) in enumerate(
            [(TOWER, f"{ANSWER} Visitors do not climb to the roof."), ((other,), other)]
        )
    ]
    duels = [duel for duel in made_duels(items, seed=1) if duel.kind == kind]
    assert {duel.one.label for duel in duels} == {0}
    for duel in duels:
        ((start, end),) = duel.other.spans
        before, wrong = sentences_of(duel.one.answer), sentences_of(duel.other.answer)
        said = {key(sentence) for sentence in before}
        touched = [key(s) for s in wrong if s.start < end and s.end > start]
        assert set(touched) >= {key(s) for s in wrong} - said
        assert len(touched) <= 2
    odds = {duel.one.group: shipped().choices for duel in duels}
    rows = contrasts(duels, shipped().rarity, odds)
    assert rows.unsupported.any()
    assert rows.rows.shape == (len(rows.kind), len(CONTRASTS))


@pytest.fixture
def post(url: str, generation_of: MakeGeneration, otlp_of) -> Callable[..., list[Generation]]:
    """Give a function that stores one arm's answers."""

    def stored(arm: Arm, texts: Sequence[str], error: str | None = None) -> list[Generation]:
        made = [
            replace(
                generation_of(2 * n + (arm is Arm.CANDIDATE) + 1, text, context=TOWER),
                rollout="k4",
                arm=arm,
                prompt_id=f"p{n}",
                repeat=0,
                error_type=error,
            )
            for n, text in enumerate(texts)
        ]
        with Client(url) as client:
            client.post_traces(otlp_of(made), content_type="application/json")
        return made

    return stored


CHOICE = Choice(names=("lexical-support",))


def stored(client: Client) -> set[tuple[str, str, float]]:
    return {(s.span_id, s.version, round(s.value, 9)) for s in client.scores("k4")}


def seen_by_the_gate(client: Client) -> list[list[float | None]]:
    table = client.pairs_table("k4")
    columns = [table[f"{arm}_score_groundedness"].to_list() for arm in Arm]
    return [[v and round(v, 9) for v in column] for column in columns]


def test_pairs_are_scored_beside_each_other_and_once(url, post, beside) -> None:
    """Both sides of a pair; what has none, or a failed one, alone; again changes nothing."""
    lone = post(Arm.BASELINE, [ANSWER, ANSWER])[1]
    post(Arm.CANDIDATE, [WRONG["number"]])
    with Client(url) as client:
        counts = evaluate_rollout(client, "k4", choice=CHOICE)
        assert (counts.scored, counts.kept) == (3, 0)
        good, bad = beside(ANSWER, WRONG["number"]), beside(WRONG["number"], ANSWER)
        assert {version for _, version, _ in stored(client)} == {ALONE, PAIRED}
        assert seen_by_the_gate(client)[1] == [round(bad.value, 9), None]
        again = evaluate_rollout(client, "k4", choice=CHOICE)
        assert (again.scored, again.kept) == (0, 3)
        post(Arm.CANDIDATE, [WRONG["number"], WRONG["negation"]])
        later = evaluate_rollout(client, "k4", choice=CHOICE)
        assert (later.scored, later.kept) == (2, 3)
        assert lone.span_id in {s.span_id for s in client.scores("k4") if s.version == PAIRED}
        assert seen_by_the_gate(client) == [
            [round(good.value, 9), round(beside(ANSWER, WRONG["negation"]).value, 9)],
            [round(bad.value, 9), round(beside(WRONG["negation"], ANSWER).value, 9)],
        ]


def test_a_side_that_failed_leaves_the_other_alone(url, post, generation_of) -> None:
    """The gate counts the failure; what answered is judged by itself."""
    post(Arm.BASELINE, [ANSWER])
    post(Arm.CANDIDATE, [""], error="timeout")
    with Client(url) as client:
        evaluate_rollout(client, "k4", choice=CHOICE)
        alone = Groundedness().score(generation_of(1, ANSWER, context=TOWER))
        assert [(s.version, s.value) for s in client.scores("k4")] == [(ALONE, alone.value)]


class SeenEnoughError(Exception):
    """The test has seen enough."""


def follow(client: Client, leases: int) -> None:
    """Follow until so many leases were worked off."""
    finish, left = client.finish_lease, [leases]

    def finished(id_: str) -> bool:
        found = finish(id_)
        left[0] -= 1
        if not left[0]:
            raise SeenEnoughError
        return found

    client.finish_lease = finished  # type: ignore[method-assign]
    with pytest.raises(SeenEnoughError):
        follow_rollout(client, "k4", lambda _: None, choice=CHOICE)
    client.finish_lease = finish  # type: ignore[method-assign]


def test_following_scores_a_pair_once_it_is_one(url, post, beside) -> None:
    """Alone while the other side is missing, then both beside each other."""
    post(Arm.BASELINE, [ANSWER])
    with Client(url) as client:
        follow(client, 1)
        assert {version for _, version, _ in stored(client)} == {ALONE}
        post(Arm.CANDIDATE, [WRONG["number"]])
        follow(client, 1)
        wanted = [beside(ANSWER, WRONG["number"]), beside(WRONG["number"], ANSWER)]
        assert seen_by_the_gate(client) == [[round(score.value, 9)] for score in wanted]


def test_a_slow_worker_does_not_undo_a_pair(url, post, beside, monkeypatch) -> None:
    """Where another worker scored the pair meanwhile, the pair's scores count, not ours."""
    post(Arm.BASELINE, [ANSWER])
    wanted = [beside(ANSWER, WRONG["number"]), beside(WRONG["number"], ANSWER)]
    with Client(url) as slow, Client(url) as other:
        posting = slow.post_scores

        def late(scores: list[Score]) -> None:
            monkeypatch.setattr(slow, "post_scores", posting)
            post(Arm.CANDIDATE, [WRONG["number"]])
            assert evaluate_rollout(other, "k4", choice=CHOICE).scored == 2
            posting(scores)
            assert seen_by_the_gate(other)[0] != [round(wanted[0].value, 9)]

        monkeypatch.setattr(slow, "post_scores", late)
        follow(slow, 1)
        assert seen_by_the_gate(other) == [[round(score.value, 9)] for score in wanted]
