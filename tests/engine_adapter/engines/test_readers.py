"""What each engine's answer says is read exactly, or is absent."""

from typing import Any

import pytest
from recorded_answers import (
    SGLANG_0_5_10,
    SGLANG_0_5_18,
    SGLANG_0_5_23,
    SGLANG_NOTHING_MEASURED,
    TGI_HEADERS,
    answered,
    chat,
    document,
    events,
)

from collector.contract import Speculation
from engine_adapter.engines.acceptance_counts import VerifyStep
from engine_adapter.engines.answer import AnswerReader, SpeculationSetup
from engine_adapter.engines.llamacpp import LlamaCppReader, Totals, verify_steps
from engine_adapter.engines.lmdeploy import LmdeployReader
from engine_adapter.engines.openai import OpenAIReader
from engine_adapter.engines.sglang import SglangReader
from engine_adapter.engines.tensorrt_llm import TensorRtLlmReader
from engine_adapter.engines.tgi import TgiReader
from engine_adapter.engines.vllm import VllmReader
from engine_adapter.errors import GenerationError

DRAFT = Speculation(method="draft_model", draft_model="draft", num_speculative_tokens=4)
ON = SpeculationSetup(on=True, configured=DRAFT)
OFF = SpeculationSetup(on=False)
CHAIN = SpeculationSetup(on=True, configured=DRAFT, fixed_width=3)
READERS = [
    LlamaCppReader,
    LmdeployReader,
    OpenAIReader,
    SglangReader,
    TensorRtLlmReader,
    TgiReader,
    VllmReader,
]


VLLM_DRAFT = Speculation(
    method="draft_model",
    draft_model="draft",
    num_speculative_tokens=4,
    source="request",
    steps=22,
    draft_tokens=88,
    accepted_tokens=44,
    draft_tokens_per_pos=(22, 22, 22, 22),
    accepted_tokens_per_pos=(14, 12, 11, 7),
    acceptance_histogram=(8, 2, 1, 4, 7),
)


def test_vllm_says_counts_and_times_in_its_body() -> None:
    """Times in milliseconds become seconds; the time since scheduling is prefill, not TTFT."""
    answer = answered(VllmReader(ON), document("vllm/draft.json"))
    assert answer.speculation == VLLM_DRAFT
    assert (answer.input_tokens, answer.output_tokens, answer.finish_reason) == (59, 64, "length")
    assert answer.queue_s == pytest.approx(4.2683e-05, rel=1e-4)
    assert answer.prefill_s == pytest.approx(0.04382997, rel=1e-6)
    assert answer.decode_s == pytest.approx(0.44183682, rel=1e-6)
    assert answer.server_ttft_s is None
    assert answer.response_id == "chatcmpl-probe-req-1"


def test_vllm_says_the_same_in_a_stream() -> None:
    """The usage chunk carries the metrics; the text is that of the whole answer."""
    answer = answered(VllmReader(ON), *events("vllm/draft.sse"))
    assert answer.speculation == VLLM_DRAFT
    assert answer.text == answered(VllmReader(), document("vllm/draft.json")).text
    assert (answer.input_tokens, answer.output_tokens) == (59, 64)


def test_vllm_counts_what_the_verifier_accepted_even_where_it_was_cut() -> None:
    """The prefill's token, a bonus a step and the accepted are 3 more than max_tokens allowed."""
    answer = answered(VllmReader(ON), document("vllm/draft.json"))
    said = answer.speculation
    assert answer.output_tokens == 64
    assert 1 + said.steps + said.accepted_tokens == 67


def test_vllm_ngram_steps_that_draft_less_than_k_are_counted_as_they_were() -> None:
    """84 tokens in 22 steps of at most 4, from the detailed list."""
    said = answered(VllmReader(), document("vllm/ngram.json")).speculation
    assert (said.steps, said.draft_tokens, said.accepted_tokens) == (22, 84, 4)
    assert said.draft_tokens_per_pos == (22, 22, 21, 19)
    assert said.accepted_tokens_per_pos == (2, 1, 1, 0)


@pytest.mark.parametrize("said", [None, {}, {"num_draft_tokens": 0, "draft_acceptance_rate": 0.0}])
def test_vllm_without_drafts_has_no_data_and_not_a_rate_of_zero(said: Any) -> None:
    """Null (several choices), nothing, and zero drafts leave the counts absent."""
    answer = answered(VllmReader(ON), chat("x", metrics={"speculative_decoding": said}))
    assert answer.speculation == DRAFT
    assert answered(VllmReader(OFF), document("vllm/baseline.json")).speculation is None


def test_vllm_summary_has_no_per_position_proposals() -> None:
    """What only `detailed` says is absent under `summary`."""
    body = document("vllm/draft.json")
    for name in ("per_step_accepted", "per_step_drafted"):
        del body["metrics"]["speculative_decoding"][name]
    said = answered(VllmReader(ON), body).speculation
    assert said.draft_tokens_per_pos is None
    assert said.accepted_tokens_per_pos == (14, 12, 11, 7)


def test_vllm_token_ids_say_how_many_tokens_a_chunk_has() -> None:
    """A chunk of four ids is four tokens, also where it is half a character and no text."""
    reader = VllmReader()
    choice = {
        "index": 0,
        "delta": {"content": ""},
        "finish_reason": None,
        "token_ids": [1, 2, 3, 4],
    }
    piece = reader.take({"choices": [choice]})
    assert (piece.text, piece.tokens) == ("", 4)


@pytest.mark.parametrize(
    ("sent", "counted", "kept"),
    [
        ([[1, 2], [3]], 3, (1, 2, 3)),
        ([[1, 2], [3]], 5, None),
        ([[1, 2], None], 3, None),
        ([[1, -2], [3]], 3, None),
        ([[], []], 0, None),
    ],
)
def test_token_ids_are_kept_if_all_came(
    sent: list[list[int] | None], counted: int, kept: tuple[int, ...] | None
) -> None:
    """A parser may keep tokens back, and then the usage counts more than were sent."""
    reader = VllmReader()
    for ids in sent:
        reader.take({"choices": [{"index": 0, "delta": {"content": "a"}, "token_ids": ids}]})
    reader.take({"choices": [], "usage": {"completion_tokens": counted}})
    assert reader.answer().token_ids == kept


def test_llamacpp_says_counts_on_a_whole_answer_but_no_steps() -> None:
    """Drafted and accepted are exact, the number of verify steps is unknown, not derived."""
    answer = answered(LlamaCppReader(ON), document("llamacpp/draft.json"))
    said = answer.speculation
    assert (said.draft_tokens, said.accepted_tokens, said.steps) == (84, 41, None)
    assert said.source == "request"
    assert said.acceptance_histogram is None
    assert answer.prefill_s == pytest.approx(0.640736)
    assert answer.cached_input_tokens == 0


def test_llamacpp_steps_follow_exactly_from_the_counts_so_far() -> None:
    """The increments are the steps; their sums are the last chunk's totals."""
    answer = answered(LlamaCppReader(ON), *events("llamacpp/draft_timings_per_token.sse"))
    said = answer.speculation
    assert (said.steps, said.draft_tokens, said.accepted_tokens) == (16, 58, 23)
    assert said.draft_tokens_per_pos == (16, 15, 14, 13)
    assert said.accepted_tokens_per_pos == (10, 6, 5, 2)
    assert said.acceptance_histogram == (6, 4, 1, 3, 2)
    # 40 tokens = the prefill's one + 23 accepted + 16 bonus tokens.
    assert answer.output_tokens == 1 + said.accepted_tokens + said.steps


def test_llamacpp_gives_one_token_a_chunk_with_its_timings() -> None:
    """Chunks before the first token are no output; each later one says its tokens."""
    reader = LlamaCppReader()
    pieces = [reader.take(event) for event in events("llamacpp/draft_timings_per_token.sse")]
    assert [piece.tokens for piece in pieces if piece is not None] == [1] * 40


@pytest.mark.parametrize(
    ("setup", "counts"), [(ON, (0, 0, 0)), (OFF, None), (SpeculationSetup(), None)]
)
def test_llamacpp_leaves_out_a_zero_which_is_one_only_where_it_speculates(
    setup: SpeculationSetup, counts: tuple[int, ...] | None
) -> None:
    """The same body means nothing drafted on one server, and nothing known on another."""
    said = answered(LlamaCppReader(setup), document("llamacpp/baseline.json")).speculation
    assert (said and (said.draft_tokens, said.accepted_tokens, said.steps)) == counts


def test_llamacpp_native_route_is_read_too() -> None:
    """`/completion` has the text in `content`, its end in `stop_type`, and the same timings."""
    answer = answered(LlamaCppReader(ON), document("llamacpp/draft_native.json"))
    said = answer.speculation
    assert (said.draft_tokens, said.accepted_tokens) == (39, 13)
    assert (answer.output_tokens, answer.finish_reason) == (24, "length")
    assert answer.cached_input_tokens == 36
    assert answer.text.startswith("roling a single function")


@pytest.mark.parametrize(
    ("seen", "steps"),
    [
        ([(0, 0, 0), (1, 0, 0), (2, 4, 3), (5, 4, 3), (6, 8, 4)], [(4, 3), (4, 1)]),
        ([(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)], []),
        ([(0, 0, 0), (1, 0, 0), (4, 8, 4)], None),  # two steps may hide in three tokens
        ([(0, 0, 0), (1, 0, 0), (3, 1, 1)], [(1, 1)]),  # one draft token is one step
        ([(0, 0, 0), (1, 0, 0), (2, 4, 3), (3, 8, 4)], None),  # before the first step's tokens
        ([(0, 0, 0), (1, 4, 3), (2, 3, 3)], None),  # counts that fall
        ([(0, 0, 0), (1, 4, 5)], None),  # more accepted than drafted
    ],
)
def test_llamacpp_steps_are_exact_or_absent(
    seen: list[tuple[int, int, int]], steps: list[tuple[int, int]] | None
) -> None:
    """A chunk that was held back may hide a step's border; then nobody guesses."""
    found = verify_steps([Totals(*totals) for totals in seen])
    assert found == (None if steps is None else [VerifyStep(*step) for step in steps])


@pytest.mark.parametrize("said", [SGLANG_0_5_23, SGLANG_0_5_18, SGLANG_0_5_10])
@pytest.mark.parametrize("place", ["sglext", "choice", "native"])
def test_sglang_counts_by_every_name_and_place(said: dict[str, Any], place: str) -> None:
    """Three releases' names, in three places, are the same counts."""
    body = {
        "sglext": chat("x", sglext={"spec_tokens_details": said}),
        "choice": chat("x", choice={"meta_info": said}),
        "native": {"text": "x", "meta_info": {"completion_tokens": 40, **said}},
    }[place]
    answer = answered(SglangReader(CHAIN), body)
    counts = answer.speculation
    assert (counts.steps, counts.draft_tokens, counts.accepted_tokens) == (16, 48, 24)
    assert answer.output_tokens == 40
    # The number proposed is the engine's product, and the source says so.
    assert counts.source == "derived"


def test_sglang_proposed_tokens_are_absent_where_steps_may_differ() -> None:
    """Without flags that fix each step's width the product is no count; accepted tokens are."""
    body = chat("x", sglext={"spec_tokens_details": SGLANG_0_5_23})
    for setup in (ON, SpeculationSetup(on=True, fixed_width=5)):
        counts = answered(SglangReader(setup), body).speculation
        assert (counts.steps, counts.draft_tokens, counts.accepted_tokens) == (16, None, 24)
        assert counts.source == "request"
    assert counts.accepted_tokens_per_pos == (12, 8, 4)
    assert counts.acceptance_histogram == (4, 4, 4, 4)


def test_sglang_zeros_are_what_it_writes_where_nothing_was_measured() -> None:
    """0.0 and [] are its way to say nothing."""
    body = chat("x", sglext={"spec_tokens_details": SGLANG_NOTHING_MEASURED})
    assert answered(SglangReader(CHAIN), body).speculation == DRAFT
    assert answered(SglangReader(OFF), body).speculation is None


def test_sglang_native_stream_repeats_the_text_from_its_start() -> None:
    """Only the new part of each event is a piece."""
    reader = SglangReader()
    pieces = [
        reader.take({"text": text, "meta_info": {"id": "r", "completion_tokens": n, **end}})
        for text, n, end in (
            ("The", 1, {}),
            ("The end", 2, {"finish_reason": {"type": "stop", "matched": 0}, "queue_time": 0.25}),
        )
    ]
    assert [piece and piece.text for piece in pieces] == ["The", " end"]
    answer = reader.answer()
    assert (answer.text, answer.output_tokens, answer.finish_reason) == ("The end", 2, "stop")
    assert (answer.queue_s, answer.response_id) == (0.25, "r")


def test_tgi_says_times_in_headers_and_nothing_of_speculation() -> None:
    """The queue time is milliseconds; the counts are absent though the route speculates."""
    reader = TgiReader(ON)
    reader.take_headers(TGI_HEADERS)
    answer = answered(reader, chat("x", finish="eos_token", usage=None))
    assert (answer.queue_s, answer.input_tokens, answer.output_tokens) == (0.012, 12, 40)
    assert answer.finish_reason == "stop"
    assert answer.speculation == DRAFT


def test_tgi_native_stream_marks_special_tokens_which_are_no_drafts() -> None:
    """Each event is one token; a special one has no text."""
    reader = TgiReader()
    details = {"finish_reason": "eos_token", "generated_tokens": 2, "seed": None}
    for token, end in (
        ({"id": 5, "text": "Paris", "special": False}, {}),
        (
            {"id": 2, "text": "</s>", "special": True},
            {"generated_text": "Paris", "details": details},
        ),
    ):
        piece = reader.take({"token": token, **end})
        assert piece.tokens == 1
    answer = reader.answer()
    assert (answer.text, answer.output_tokens, answer.finish_reason) == ("Paris", 2, "stop")
    assert answer.speculation is None


def test_tensorrt_llm_mean_is_not_made_into_counts() -> None:
    """A mean of tokens an iteration, without the iterations, counts nothing."""
    body = chat("x", choice={"avg_decoded_tokens_per_iter": 2.5})
    assert answered(TensorRtLlmReader(ON), body).speculation == DRAFT
    assert answered(TensorRtLlmReader(), body).speculation is None


def test_accepted_predictions_of_the_openai_api_are_not_draft_tokens() -> None:
    """They are tokens of a prediction that the client sent."""
    details = {"accepted_prediction_tokens": 18, "rejected_prediction_tokens": 10}
    usage = {"prompt_tokens": 9, "completion_tokens": 30, "completion_tokens_details": details}
    cached = {"prompt_tokens_details": {"cached_tokens": 4}}
    answer = answered(OpenAIReader(), chat("x", usage=usage | cached))
    assert answer.speculation is None
    assert (answer.output_tokens, answer.cached_input_tokens) == (30, 4)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("wrong", [None, True, -1, "4", 2.5, [], {}, [1, None], float("nan")])
def test_a_field_of_the_wrong_type_is_absent(reader: type[AnswerReader], wrong: Any) -> None:
    """Stripped, null and mistyped fields leave their value absent, and raise nothing."""
    body = chat("x") | {
        "id": None,
        "usage": {"prompt_tokens": wrong, "completion_tokens": wrong},
        "metrics": {"queue_time_ms": wrong, "speculative_decoding": {"num_draft_tokens": wrong}},
        "timings": {"predicted_n": wrong, "draft_n": wrong},
        "sglext": {"spec_tokens_details": {"spec_verify_ct": wrong}},
    }
    answer = answered(reader(ON), body)
    assert (answer.input_tokens, answer.output_tokens, answer.response_id) == (None, None, None)
    assert answer.speculation == DRAFT


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "out of memory", "type": "Internal"}}, "out of memory"),
        ({"error": "overloaded", "error_type": "overloaded"}, "overloaded"),
        ({"object": "error", "message": "no such model", "code": 404}, "no such model"),
        ({"error": {"code": 500}}, "500"),
    ],
)
def test_an_error_in_place_of_an_answer_is_raised_with_the_engines_words(
    reader: type[AnswerReader], body: Any, words: str
) -> None:
    """Each engine's shape of an error, also in the middle of a stream."""
    one = reader()
    one.take(chat("half", finish=""))
    with pytest.raises(GenerationError, match=words) as raised:
        one.take(body)
    assert raised.value.error_type == "server_error_in_stream"
    assert one.answer().text == "half"


@pytest.mark.parametrize("reader", READERS)
def test_each_engine_is_asked_for_usage_in_a_stream(reader: type[AnswerReader]) -> None:
    """Without it a stream has no token counts; an answer that is whole has them anyway."""
    assert reader.request_fields(stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in reader.request_fields(stream=False)


def test_of_several_choices_the_first_is_the_answer() -> None:
    """Counts that the engine gives for the request as a whole are then absent."""
    body = chat("first", sglext={"spec_tokens_details": SGLANG_0_5_23})
    body["choices"].append(body["choices"][0] | {"index": 1, "message": {"content": "second"}})
    answer = answered(SglangReader(CHAIN), body)
    assert answer.text == "first"
    assert answer.speculation == DRAFT


def test_reasoning_and_tool_calls_are_output_without_text() -> None:
    """The first of them is the first token that a user waits for."""
    reader = OpenAIReader()
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{"}}]},
        {"content": "yes"},
    ]
    pieces = [reader.take({"choices": [{"index": 0, "delta": delta}]}) for delta in deltas]
    assert [piece and piece.text for piece in pieces] == [None, "", "", "yes"]
