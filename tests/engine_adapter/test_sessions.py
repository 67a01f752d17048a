"""Sessions: how workloads say them, in which order and when their turns are asked, and of what."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import Received, Reply, Route, chat, json_reply, running

from collector.contract import Arm, Generation
from engine_adapter import sessions
from engine_adapter.engines import Answer, EngineOpener
from engine_adapter.engines.observation import ObservedAnswer
from engine_adapter.engines.tool_calls import ToolCall
from engine_adapter.errors import WorkloadError
from engine_adapter.messages import Message
from engine_adapter.routes import HttpRoute
from engine_adapter.run import conversation, rollout_file, runner, traces
from engine_adapter.run.load_shape import Load
from engine_adapter.run.runner import Experiment
from engine_adapter.run.schedule import turns
from engine_adapter.run.traces import Arrival, in_sessions
from engine_adapter.workload import Prompt

TRACES = Path(__file__).parent / "traces"
SESSION = {
    "id": "s",
    "cohort": "chat",
    "messages": [{"role": "system", "content": "Be kind."}],
    "max_tokens": 9,
    "reference": "bye",
    "turns": [
        {"prompt": "hello", "answer": "hi"},
        {"prompt": "how are you?", "answer": "well", "think_s": 0.2, "max_tokens": 5},
        "bye",
    ],
}


def read(folder: Path, *records: Any, own: bool = False) -> list[sessions.Session]:
    path = folder / "w.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return sessions.read(path, own_history=own)


def said(prompt: Prompt) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in prompt.chat]


class TestWorkloads:
    def test_each_turn_is_asked_after_the_recorded_answers(self, tmp_path: Path) -> None:
        """A turn's keys override the record's; the reference is of the last answer."""
        ((first, second, third),) = read(tmp_path, SESSION)
        assert [one.id for one in (first, second, third)] == ["s/1", "s/2", "s/3"]
        assert [one.turn for one in (first, second, third)] == [1, 2, 3]
        assert {one.session for one in (first, second, third)} == {"s"}
        assert [one.max_tokens for one in (first, second, third)] == [9, 5, 9]
        assert [one.reference for one in (first, second, third)] == [None, None, "bye"]
        assert second.think_s == 0.2
        assert said(third) == [
            ("system", "Be kind."),
            ("user", "hello"),
            ("assistant", "hi"),
            ("user", "how are you?"),
            ("assistant", "well"),
            ("user", "bye"),
        ]

    def test_records_of_one_session_come_in_their_order(self, tmp_path: Path) -> None:
        """By `turn` if they have one, else as in the file; others stay alone."""
        one = {"cohort": "c", "prompt": "x"}
        numbered = [{**one, "id": f"a{n}", "session": "a", "turn": n} for n in (7, 3)]
        plain = [{**one, "id": f"b{n}", "session": "b"} for n in (2, 1)]
        found = read(tmp_path, numbered[0], {**one, "id": "c"}, plain[0], numbered[1], plain[1])
        assert [[(p.id, p.turn) for p in session] for session in found] == [
            [("a3", 1), ("a7", 2)],
            [("c", None)],
            [("b2", 1), ("b1", 2)],
        ]

    @pytest.mark.parametrize(
        ("record", "message"),
        [
            ({"turns": []}, "w.jsonl:1: turns: is empty; wanted at least one"),
            ({"turns": [{"answer": "a"}]}, "w.jsonl:1: turns.0: wanted either `messages` or `pro"),
            (
                {"turns": [{"messages": [{"role": "assistant", "content": "a"}]}]},
                "w.jsonl:1: turns.0: ends with a message of the assistant; wanted a user's",
            ),
            ({"turns": [{"prompt": "a", "anser": "b"}]}, "turns.0.anser: unknown key; did you me"),
            (
                {"turns": ["a", {"prompt": "b", "think_s": 1e6}]},
                "turns.1.think_s: Input should be less than or equal to 3600 (got 1000000.0)",
            ),
            (
                {"turns": [{"prompt": "b", "think_s": 1, "t": 2}]},
                "turns.0: wanted either `think_s` or `t`",
            ),
            (
                {"turns": ["a", "b"]},
                "w.jsonl: s/2: its history lacks the `answer` to s/1 or to an earlier turn; give",
            ),
            ({"prompt": "x", "turns": ["a"]}, "w.jsonl:1: prompt: unknown key"),
            ({"turns": "a"}, "w.jsonl:1: turns: wanted a list (got 'a')"),
            ({"turns": [3]}, "w.jsonl:1: turns.0: wanted an object (got 3)"),
        ],
    )
    def test_a_record_that_makes_no_session_is_named(
        self, tmp_path: Path, record: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(WorkloadError) as caught:
            read(tmp_path, {"id": "s", "cohort": "c", **record})
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("numbers", "message"),
        [
            ((1, None), "numbers some of its requests and not others; number all, or none"),
            ((2, 2), "w.jsonl: p1: turn: 2 is that of p0 too"),
        ],
    )
    def test_mixed_orders_are_refused(
        self, tmp_path: Path, numbers: Sequence[int | None], message: str
    ) -> None:
        records = [
            {"id": f"p{n}", "cohort": "c", "prompt": "x", "session": "a"}
            | ({} if turn is None else {"turn": turn})
            for n, turn in enumerate(numbers)
        ]
        with pytest.raises(WorkloadError) as caught:
            read(tmp_path, *records)
        assert message in str(caught.value)

    def test_own_histories_need_no_recorded_answers(self, tmp_path: Path) -> None:
        ((_, second),) = read(tmp_path, {"id": "s", "cohort": "c", "turns": ["a", "b"]}, own=True)
        assert said(second)[-1] == ("user", "b")

    @pytest.mark.parametrize(
        ("records", "message"),
        [
            (
                [
                    {"id": "p1", "cohort": "c", "session": "a", "prompt": "x"},
                    {"id": "p2", "cohort": "c", "session": "a", "prompt": "y"},
                ],
                "w.jsonl: p2: messages: do not begin with those of p1 and one answer to them",
            ),
            (
                [
                    {
                        "id": "s",
                        "cohort": "c",
                        "turns": [
                            {"prompt": "x", "answer": "call"},
                            {"messages": [{"role": "tool", "tool_call_id": "1", "content": "r"}]},
                        ],
                    }
                ],
                "tools' results answer recorded calls, so that this session needs `history: recor",
            ),
            (
                [{"id": "s", "cohort": "c", "turns": ["x", "y"], "tools": [{"name": "f"}]}],
                "w.jsonl: s/2: tools: s/1 before it offers some, and nobody would answer the call",
            ),
        ],
    )
    def test_what_cannot_follow_own_answers_is_refused(
        self, tmp_path: Path, records: list[Any], message: str
    ) -> None:
        with pytest.raises(WorkloadError) as caught:
            read(tmp_path, *records, own=True)
        assert message in str(caught.value)


class TestSchedule:
    def test_arms_swap_from_session_to_session(self, tmp_path: Path) -> None:
        """Both arms get the same turns and times; the warm-up is of first turns."""
        prompts = [p for s in read(tmp_path, SESSION, {**SESSION, "id": "u"}) for p in s]
        load = Load(mode="constant", rate=10, warmup=1, think_s={"exponential": 5})
        found = list(turns(prompts, load, seed=1))
        assert [(t.prompt.id, t.warmup) for t in found[:2]] == [("s/1", True)] * 2
        arms = [(t.arm.value, t.prompt.id, t.due_s) for t in found[2:]]
        assert [arm for arm, _, _ in arms] == ["baseline"] * 3 + ["candidate"] * 6 + [
            "baseline"
        ] * 3
        assert {due for _, id_, due in arms if id_.startswith("u")} == {0.1}
        by_arm = [{t.prompt.id: t.think_s for t in found[2:] if t.arm is arm} for arm in Arm]
        assert by_arm[0] == by_arm[1]
        assert len(set(by_arm[0].values())) == 6

    def test_think_times_are_exponential(self) -> None:
        prompts = [Prompt(id=f"p{n}", cohort="c", prompt="x") for n in range(4000)]
        load = Load(think_s={"exponential": 3}, warmup=0)
        drawn = [turn.think_s or 0 for turn in turns(prompts, load, seed=1)]
        assert sum(drawn) / len(drawn) == pytest.approx(3, rel=0.05)

    def test_a_fixed_think_time_wins_over_the_recorded_one(self, tmp_path: Path) -> None:
        (session,) = read(tmp_path, SESSION)
        found = turns(session, Load(think_s=7, warmup=0), seed=1)
        assert {turn.think_s for turn in found} == {7}
        found = turns(session, Load(warmup=0), seed=1)
        assert [turn.think_s for turn in found][:3] == [None, 0.2, None]

    def test_repeats_of_a_session_are_sessions_of_their_own(self, tmp_path: Path) -> None:
        (session,) = read(tmp_path, SESSION)
        found = turns(session, Load(repeats=2, warmup=0), seed=1)
        assert {(turn.session, turn.repeat) for turn in found} == {("s", 0), ("s#1", 1)}


class TestTraces:
    def test_requests_continue_those_whose_blocks_they_begin_with(self) -> None:
        """Not by a common system prompt alone, and not if the answer would not fit."""
        trace = [
            Arrival(0, 1000, 50, (1, 2)),
            Arrival(1, 1000, 50, (1, 3)),
            Arrival(2, 2000, 60, (1, 9, 4)),
            Arrival(3, 2500, 60, (1, 9, 7, 8, 5)),
            Arrival(4, 100, 60, (1, 9, 7, 8, 6)),
        ]
        assert in_sessions(trace) == [[0], [1], [2, 3], [4]]

    def test_sessions_that_are_named_need_no_blocks(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        rows: list[dict[str, object]] = [
            {"timestamp": 0, "session_id": "a", "input_length": 5, "output_length": 2},
            {"timestamp": 500, "session_id": "b", "input_length": 5, "output_length": 2},
            {"timestamp": 900, "session_id": "a", "delay": 250, "input_length": 9},
        ]
        path.write_text("\n".join(map(json.dumps, rows)))
        trace = traces.read(path)
        assert in_sessions(trace) == [[0, 2], [1]]
        assert trace[2].delay_s == 0.25
        prompts = [Prompt(id=f"p{n}", cohort="c", prompt="x") for n in range(2)]
        load = Load(mode="trace", file="t", warmup=0, speed=2)
        found = [
            turn for turn in turns(prompts, load, seed=1, trace=trace) if turn.arm is Arm.BASELINE
        ]
        assert [(t.prompt.id, t.repeat, t.due_s, t.think_s) for t in found] == [
            ("p0", 0, 0, None),
            ("p0", 1, 0, 0.125),
            ("p1", 0, 0.25, None),
        ]
        assert found[0].session == found[1].session != found[2].session
        rows[2]["delay"] = 1e9
        path.write_text("\n".join(map(json.dumps, rows)))
        with pytest.raises(WorkloadError, match=r"delay: 1000000000\.0 ms; wanted 0 to 3600 s"):
            traces.read(path)

    @given(st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=20))
    def test_every_request_is_in_one_session_in_order(self, blocks: list[list[int]]) -> None:
        trace = [Arrival(n, 100 * n, 1, tuple(one)) for n, one in enumerate(blocks)]
        found = in_sessions(trace)
        assert sorted(place for session in found for place in session) == list(range(len(trace)))
        assert all(a < b for session in found for a, b in pairwise(session))


class Run:
    """What both arms' servers got, and the generations and roots made of their answers."""

    def __init__(self, session: sessions.Session, load: Load, **replies: Reply) -> None:
        self.made: list[Generation] = []
        self.ended: list[list[Generation]] = []
        with ExitStack() as stack:
            servers = {arm: stack.enter_context(running(Route(replies[arm.value]))) for arm in Arm}
            asyncio.run(self._run(session, load, {arm: s.url for arm, s in servers.items()}))
            self.asked: dict[Arm, Sequence[Received]] = {
                arm: [one for one in server.log() if one.body] for arm, server in servers.items()
            }

    async def _run(self, session: sessions.Session, load: Load, urls: dict[Arm, str]) -> None:
        opener = EngineOpener()
        engines = {
            arm: await opener.open(HttpRoute(engine="openai", model="m", url=url))
            for arm, url in urls.items()
        }
        await runner.run(
            Experiment(rollout="r", engines=engines),
            turns(session, load, seed=1),
            concurrency=load.concurrency or (None if load.is_open else 1),
            record=self.made.append,
            ended=self.ended.append,
        )
        for engine in engines.values():
            await engine.close()

    def of(self, arm: Arm) -> list[Generation]:
        return [made for made in self.made if made.arm is arm]

    def bodies(self, arm: Arm) -> Iterator[list[tuple[str, str]]]:
        for received in self.asked[arm]:
            yield [(m["role"], m["content"]) for m in received.body["messages"]]


OWN = Load(history="own", warmup=0)
ANSWERS = {"baseline": chat(["I am B"]), "candidate": chat(["I am C"])}


class TestRuns:
    def test_recorded_histories_are_the_same_for_both_arms(self, tmp_path: Path) -> None:
        """Each turn is a pair; the turns of an arm share a trace, the arms do not."""
        (session,) = read(tmp_path, SESSION)
        run = Run(session, Load(warmup=0, think_s=0), **ANSWERS)
        assert list(run.bodies(Arm.BASELINE)) == list(run.bodies(Arm.CANDIDATE))
        assert list(run.bodies(Arm.BASELINE)) == [said(prompt) for prompt in session]
        for arm in Arm:
            made = run.of(arm)
            assert [(g.prompt_id, g.repeat, g.turn) for g in made] == [
                ("s/1", 0, 1),
                ("s/2", 0, 2),
                ("s/3", 0, 3),
            ]
            assert {(g.conversation_id, g.own_history) for g in made} == {("s", None)}
            assert len({g.trace_id for g in made}) == 1
        assert len({g.trace_id for g in run.made}) == 2

    def test_own_histories_hold_the_arm_s_answers(self, tmp_path: Path) -> None:
        """The last turn is the pair; those before it are spans of the session alone."""
        (session,) = read(tmp_path, SESSION, own=True)
        run = Run(session, Load(history="own", warmup=0, think_s=0), **ANSWERS)
        assert list(run.bodies(Arm.CANDIDATE))[-1] == [
            ("system", "Be kind."),
            ("user", "hello"),
            ("assistant", "I am C"),
            ("user", "how are you?"),
            ("assistant", "I am C"),
            ("user", "bye"),
        ]
        assert ("assistant", "I am B") in list(run.bodies(Arm.BASELINE))[-1]
        for arm in Arm:
            assert [(g.prompt_id, g.repeat, g.turn) for g in run.of(arm)] == [
                (None, None, 1),
                (None, None, 2),
                ("s/3", 0, 3),
            ]
            assert {g.own_history for g in run.of(arm)} == {True}

    def test_a_failed_turn_ends_an_own_history(self, tmp_path: Path) -> None:
        """The session's end has failed as the turn did, and is not asked for."""
        (session,) = read(tmp_path, SESSION, own=True)
        failing = json_reply({"error": {"message": "no"}}, status=500)
        run = Run(session, OWN, baseline=chat(["x"]), candidate=failing)
        assert len(run.asked[Arm.CANDIDATE]) == 1
        first, end = run.of(Arm.CANDIDATE)
        assert (first.turn, end.turn) == (1, 3)
        assert (end.prompt_id, end.error_type) == ("s/3", first.error_type)
        assert end.error_type is not None
        assert end.ttft_s is None
        assert len(run.of(Arm.BASELINE)) == 3

    def test_a_failed_turn_leaves_recorded_histories_alone(self, tmp_path: Path) -> None:
        (session,) = read(tmp_path, SESSION)
        failing = json_reply({"error": {"message": "no"}}, status=500)
        run = Run(session, Load(warmup=0, think_s=0), baseline=failing, candidate=failing)
        assert [g.prompt_id for g in run.of(Arm.CANDIDATE)] == ["s/1", "s/2", "s/3"]

    @pytest.mark.parametrize(
        "load",
        [
            Load(warmup=0, concurrency=8, repeats=3),
            Load(mode="burst", rate=1000, burst_size=3, warmup=0, repeats=3),
            Load(mode="burst", rate=1000, burst_size=3, warmup=0, repeats=3, concurrency=2),
        ],
    )
    def test_no_two_turns_of_a_session_are_in_flight(self, tmp_path: Path, load: Load) -> None:
        """A turn begins when its user has read and thought; sessions run side by side."""
        (session,) = read(tmp_path, SESSION)
        slow = chat(["a"], ttft_s=0.05)
        run = Run(session, load, baseline=slow, candidate=slow)
        assert len(run.made) == 18
        by_trace: dict[str, list[Generation]] = {}
        for one in run.made:
            by_trace.setdefault(one.trace_id, []).append(one)
        assert len(by_trace) == 6
        for one in by_trace.values():
            first, second, third = one
            assert second.start_unix_ns >= first.end_unix_ns + 190_000_000
            assert third.start_unix_ns >= second.end_unix_ns - 1_000_000
        starts = sorted(one[0].start_unix_ns for one in by_trace.values())
        assert starts[1] < min(one[-1].end_unix_ns for one in by_trace.values())

    def test_recorded_times_hold_from_the_session_s_start(self, tmp_path: Path) -> None:
        """A turn is sent at its time, or after the answer before it if that is later."""
        record = {
            "id": "s",
            "cohort": "c",
            "turns": [
                {"prompt": "a", "answer": "x", "t": 100.0},
                {"prompt": "b", "answer": "y", "t": 100.4},
                {"prompt": "c", "t": 100.41},
            ],
        }
        (session,) = read(tmp_path, record)
        slow = chat(["a"], ttft_s=0.1)
        first, second, third = Run(session, Load(warmup=0), baseline=slow, candidate=slow).of(
            Arm.BASELINE
        )
        assert second.start_unix_ns - first.start_unix_ns >= 390_000_000
        assert third.start_unix_ns >= second.end_unix_ns - 1_000_000

    def test_the_root_holds_its_session_s_turns(self, tmp_path: Path) -> None:
        (session,) = read(tmp_path, SESSION)
        run = Run(session, Load(warmup=0, think_s=0), **ANSWERS)
        assert len(run.ended) == 2
        for made in run.ended:
            root = conversation.root_span(made)
            assert root.trace_id == made[0].trace_id
            assert root.start_unix_ns == made[0].start_unix_ns
            assert root.end_unix_ns == made[-1].end_unix_ns
            assert root.attributes["gen_ai.conversation.id"] == "s"


def test_workloads_of_sessions_do_not_go_with_a_trace(tmp_path: Path) -> None:
    read(tmp_path, SESSION)
    path = tmp_path / "rollout.yaml"
    route = "{engine: transformers, model: m}"
    path.write_text(
        f"rollout: r\nworkload: w.jsonl\nbaseline: {route}\ncandidate: {route}\n"
        f"load: {{mode: trace, file: {TRACES / 'mooncake_conversation.jsonl'}}}\n"
    )
    with pytest.raises(WorkloadError, match=r"holds sessions, and the trace of `load\.file` has"):
        rollout_file.sessions(rollout_file.read(path))


def test_calls_of_own_answers_stay_in_the_history() -> None:
    """A message of the history holds text and calls, and no reasoning."""
    answer = Answer(
        text="", reasoning="hm", tool_calls=(ToolCall(name="f", arguments="{}", id=None),)
    )
    seen = ObservedAnswer(concurrency=1, due_s=None, started_s=0, answer=answer)
    message = conversation._message(seen)
    assert isinstance(message, Message)
    assert message.api() == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "call_0",
                "type": "function",
                "function": {"name": "f", "arguments": "{}"},
            }
        ],
    }


@pytest.mark.parametrize("own", [False, True])
def test_the_example_replays_both_ways(own: bool) -> None:
    path = Path(__file__).parents[2] / "docs" / "examples" / "sessions.jsonl"
    assert {len(session) for session in sessions.read(path, own_history=own)} == {3}
    rollout_file.read(path.with_suffix(".yaml"))
