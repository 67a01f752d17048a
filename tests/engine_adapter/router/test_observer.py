"""Observing a stream: reading by shape gives the same as reading event by event."""

import json

import pytest
from recorded_answers import FOLDER

from engine_adapter.engines import reader_of
from engine_adapter.engines.answer import Answer
from engine_adapter.engines.chunk_shape import ChunkShape
from engine_adapter.engines.observation import ObservedAnswer
from engine_adapter.router.observer import AnswerObserver

RECORDED = {
    "vllm/draft.sse": "vllm",
    "vllm/ngram.sse": "vllm",
    "llamacpp/draft.sse": "llamacpp",
    "llamacpp/draft_timings_per_token.sse": "llamacpp",
}


def observed(data: bytes, engine: str, *, size: int) -> tuple[Answer, list[float]]:
    seen = ObservedAnswer(concurrency=1, due_s=None, started_s=0.0)
    observer = AnswerObserver(reader_of(engine)(), seen, 1 << 20)
    for at in range(0, len(data), size):
        observer.feed(data[at : at + size], float(at))
    assert observer.ended
    assert seen.error is None
    return observer.reader.answer(), seen.chunk_times_s


@pytest.mark.parametrize("name", sorted(RECORDED))
@pytest.mark.parametrize("size", [64, 1 << 20])
def test_a_recorded_stream_is_read_as_its_events_are(name: str, size: int) -> None:
    """Text, usage, counts and the number of chunks."""
    data = (FOLDER / name).read_bytes()
    reader = reader_of(RECORDED[name])()
    pieces = [
        reader.take(json.loads(block[6:]))
        for block in data.split(b"\n\n")
        if block.startswith(b"data: {")
    ]
    answer, times_s = observed(data, RECORDED[name], size=size)
    assert answer == reader.answer()
    assert len(times_s) == sum(piece is not None for piece in pieces)


def chunk(words: str, **more: object) -> str:
    choice = {"index": 0, "delta": {"content": words}, "finish_reason": None}
    return json.dumps({"id": "1", "choices": [choice], **more})


def test_a_shape_is_told_by_all_but_the_words() -> None:
    """Whatever else differs, is empty, or needs JSON to be read, is no ordinary chunk."""
    shape = ChunkShape.of(chunk("one"), "one")
    assert shape.words_of(chunk("two {}[]: é")) is None  # json.dumps escapes it
    assert shape.words_of(chunk("two {}[]:")) == "two {}[]:"
    assert shape.words_of(chunk("two {}[]:").replace("two", "zwö")) == "zwö {}[]:"
    for other in (
        chunk(""),
        chunk('a "quote"'),
        chunk("a\nline"),
        chunk("two", usage={"completion_tokens": 3}),
        chunk("two").replace("null", '"stop"'),
        chunk("two").replace('"index": 0', '"index": 1'),
        chunk("two").replace("two", "t\x00wo"),
        chunk("two")[:-1],
        shape.before[:-1] + shape.behind[1:],
    ):
        assert shape.words_of(other) is None, other


def event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def test_ordinary_chunks_are_taken_together_and_only_whole() -> None:
    """A piece with anything else in it, or a part of an event, is not taken for ordinary."""
    shape = ChunkShape.of(chunk("one"), "one")
    ordinary = event(chunk("two")) + event(chunk("zwo").replace("zwo", "zwö"))
    assert shape.words_of_all(ordinary) == ["two", "zwö"]
    for other in (
        ordinary + event(chunk("")),
        event("[DONE]") + ordinary,
        ordinary + b": a comment\n\n",
        ordinary + b"\n",
        ordinary[1:],
        ordinary[:-1],
        ordinary.replace(b"\n", b"\r\n"),
        ordinary.replace("ö".encode(), b"\xf6"),
        ordinary.replace(b"two", b't\\"wo'),
        ordinary.replace(b"null", b'"stop"', 1),
    ):
        assert shape.words_of_all(other) is None, other


@pytest.mark.parametrize("size", [1, 7, 64, 150, 1 << 20])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_any_cut_gives_the_same_answer(size: int, newline: str) -> None:
    """Ordinary chunks among others are read the same, wherever the stream is cut."""
    texts = ["one ", "two ", 'a "quote" ', "zwö ", "three ", "four"]
    parts = [chunk(""), *map(chunk, texts), chunk("").replace("null", '"stop"'), "[DONE]"]
    data = b"".join(map(event, parts)).replace(b"\n", newline.encode())
    answer, times_s = observed(data, "openai", size=size)
    assert answer.text == "".join(texts)
    assert len(times_s) == len(texts)
    assert answer.finish_reason == "stop"


@pytest.mark.parametrize("size", [1, 7, 102, 103, 104, 206, 1000])
def test_a_chunk_came_with_the_piece_that_holds_its_end(size: int) -> None:
    """Whether pieces are read one by one or together, and wherever they are cut."""
    events = [event(chunk(f"word {number:03}")) for number in range(60)]
    assert {len(one) for one in events} == {103}
    data = b"".join(events)
    end = event(chunk("").replace("null", '"stop"'))
    _, times_s = observed(data + end, "openai", size=size)
    last = [len(one) * number - 1 for number, one in enumerate(events, 1)]
    assert times_s == [float(at - at % size) for at in last]


def test_the_ordinary_chunks_at_the_beginning_are_told_from_what_follows() -> None:
    """Up to a chunk of another shape, one that is cut off, or the end."""
    shape = ChunkShape.of(chunk("one"), "one")
    two = event(chunk("two")) + event(chunk("three"))
    for rest in (b"", event("[DONE]"), event(chunk('a "quote"')) + two, event(chunk("four"))[:-1]):
        assert shape.leading_words(two + rest, 0) == (["two", "three"], len(two)), rest
        assert shape.leading_words(b"\n" + two + rest, 1) == (["two", "three"], 1 + len(two)), rest
    assert shape.leading_words(event("[DONE]") + two, 0) == ([], 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (chunk('a "quote"'), 'a "quote"'),
        (chunk(""), ""),
        ('{"content": "one", "choices": [{"index": 0, "delta": {}}]}', "one"),
        ('{"choices": [{"index": 1, "delta": {}}, {"delta": {"content": "one"}}]}', "one"),
    ],
)
def test_where_the_words_stand_elsewhere_there_is_no_shape(text: str, words: str) -> None:
    """Only what would be read as the answer's content counts as its place."""
    assert ChunkShape.of(text, words) is None
