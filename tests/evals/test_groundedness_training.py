"""Training on a tiny sample: the forests', and the network's, which goes on where it stopped."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from collector.contract import Generation
from training.groundedness.data import Labelled

torch = pytest.importorskip("torch", reason="training needs it")
pytest.importorskip("onnx", reason="training needs it")
pytest.importorskip("sklearn", reason="training needs it")

PLACES = ("Bonn", "Ghent", "Porto", "Turku", "Graz", "Leeds", "Nancy", "Split", "Basel", "Malmo")


def rows() -> Iterator[dict[str, object]]:
    """Yield six answers on each place, of which every second invents its last sentence."""
    for number, place in enumerate(PLACES):
        year = 1800 + 7 * number
        context = f"passage 1:The library of {place} was founded in {year} and has two floors."
        for repeat in range(6):
            good = f"The library of {place} was founded in {year}."
            bad = f"Its owner paints {PLACES[(number + repeat + 1) % 10]} every summer."
            wrong = repeat % 2
            kind = "Evident Conflict" if repeat == 1 else "Evident Baseless Info"
            spans = [{"start": len(good) + 1, "end": len(good) + 1 + len(bad), "type": kind}]
            yield {
                "id": f"{place}-{repeat}",
                "source_id": place,
                "context": context,
                "answer": f"{good} {bad}" if wrong else f"{good} It has two floors.",
                "label": wrong,
                "spans": spans if wrong else [],
            }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that training reads."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("ragtruth_qa", "halueval_qa", "halueval_general"):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows())
    return folder


def summaries() -> Iterator[dict[str, object]]:
    """Yield five edited copies of each of six summaries."""
    for number, place in enumerate(PLACES[:6]):
        text = f"{place} sold the old mill to a baker in May. He keeps two goats there."
        copies = ("sold gave", "keeps has", "two three", "baker butcher", "old ancient")
        for at, (word, other) in enumerate(map(str.split, copies)):
            yield {
                "id": f"{place}-{at}",
                "doc_key": place,
                "context": f"In May {place} sold its old mill to a baker. He has two goats there.",
                "answer": text.replace(f" {word} ", f" {other} "),
                "label": number % 2 if at == 1 else int(at != 4),
            }


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_forests_learn_from_answers_and_edited_summaries(
    data, tmp_path, capsys, monkeypatch
) -> None:
    """The file knows what trained it; the benchmark then judges that out of fold."""
    from benchmarks.grounding import judged
    from training.groundedness.__main__ import main

    edited, model, kept = (tmp_path / n for n in ("summedits.jsonl.gz", "model.npz", "kept.npz"))
    with gzip.open(edited, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in summaries())
    for file_of_answers in data.iterdir():
        (tmp_path / file_of_answers.name).symlink_to(file_of_answers)
    main(["--data", str(tmp_path), "--out", str(model), "--out-of-fold", str(kept)])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["auroc"] > 0.9
    monkeypatch.setattr(judged, "FILE", model)
    found = judged.judged(edited, kept)
    assert found.how == "shipped model"
    assert len(found.edit_kinds) == 30
    assert found.edits_beside is not None
    assert found.edits_beside.shape == (30, 2)
    assert found.beside is None
    assert judged.judged(edited).edits_beside is None


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder as MiniLM's, with weights drawn at random and a vocabulary of letters."""
    safetensors = pytest.importorskip("safetensors.torch")
    folder = tmp_path_factory.mktemp("minilm")
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.:'"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "library", "of", *letters]
    vocabulary = {w: n for n, w in enumerate([*words, *(f"##{c}" for c in letters)])}
    pieces = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100, "vocab": vocabulary}  # fmt: skip
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                  "strip_accents": None, "lowercase": True}  # fmt: skip
    special = [
        {"id": n, "content": w, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for n, w in enumerate(words[:4])
    ]  # fmt: skip
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
                 "normalizer": normalizer, "pre_tokenizer": {"type": "BertPreTokenizer"},
                 "post_processor": None, "decoder": None, "model": pieces}  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    generator = torch.Generator().manual_seed(1)

    def drawn(*shape: int) -> object:
        return torch.randn(*shape, generator=generator) * 0.05

    found = {
        "embeddings.word_embeddings.weight": drawn(len(vocabulary), 384),
        "embeddings.position_embeddings.weight": drawn(512, 384),
        "embeddings.token_type_embeddings.weight": drawn(2, 384),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(4):
        name = f"encoder.layer.{layer}"
        squares = ("attention.self.query", "attention.self.key", "attention.self.value",
                   "attention.output.dense")  # fmt: skip
        shapes = {**dict.fromkeys(squares, (384, 384)), "intermediate.dense": (1536, 384),
                  "output.dense": (384, 1536)}  # fmt: skip
        for part, shape in shapes.items():
            found[f"{name}.{part}.weight"] = drawn(*shape)
            found[f"{name}.{part}.bias"] = drawn(shape[0])
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
    for norm in norms:
        found |= {f"{norm}.weight": torch.ones(384), f"{norm}.bias": torch.zeros(384)}
    safetensors.save_file(found, folder / "model.safetensors")
    return folder


def train(data: Path, minilm: Path, out: Path, *more: str) -> None:
    from training.groundedness_model.__main__ import main

    main(["--data", str(data), "--minilm", str(minilm), "--out", str(out), *more])


@pytest.fixture(scope="module")
def trained(data: Path, minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a whole training: five folds, and the layers that are shipped."""
    out = tmp_path_factory.mktemp("run")
    train(data, minilm, out, "--epochs", "3", "--pieces", "400")
    return out


def finished(data: Path, minilm: Path, out: Path, folder: Path, missing: int = 0) -> Path:
    """Weigh a training against forests that know nothing; return the folder of the weights."""
    from evals.evaluators.groundedness.model import shipped
    from training.groundedness.data import load
    from training.groundedness.examples import corrupted, sentences
    from training.groundedness.fit import SEED
    from training.groundedness_model import finish

    answers = load(data / "ragtruth_qa.jsonl.gz")
    own, made = (
        len(sentences(items, shipped().rarity).answer)
        for items in (answers, corrupted(answers, SEED))
    )
    forests, weights = folder / "forests.npz", folder / "weights"
    np.savez(
        forests,
        sentences=np.tile((0.0, -9.0), (own - missing, 1)),
        made_sentences=np.tile((0.0, -9.0), (made, 1)),
    )
    finish.main(
        ["--data", str(data), "--minilm", str(minilm), "--out", str(out), "--weights",
         str(weights), "--forests", str(forests), "--out-of-fold", str(folder / "kept.npz")]
    )  # fmt: skip
    return weights


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_training_learns_ships_and_judges(
    data, minilm, trained, tmp_path, capsys, generation_of: Callable[..., Generation]
) -> None:
    """From labelled answers to an evaluator, measured on the questions that trained nothing."""
    from evals.evaluators.groundedness.model import shipped
    from evals.evaluators.groundedness_model import GroundednessModel
    from evals.evaluators.groundedness_model.network import Network

    weights = finished(data, minilm, trained, tmp_path)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["answers"] == 60
    assert told["auroc"]["forests"] == 0.5
    assert told["auroc"]["network alone"] > 0.9
    assert told["auroc"]["both"] > 0.9
    assert told["blend"]["share"] > 0
    assert [fold["network alone"] > 0.5 for fold in told["folds"]] == [True] * 5
    with np.load(tmp_path / "kept.npz") as kept:
        assert kept["probability"].shape == (60,)
    evaluator = GroundednessModel(Network(shipped().rarity, weights))
    assert told["hash"] in evaluator.version
    answer = "The library of Bonn was founded in 1800. Its owner paints Ghent every summer."
    score = evaluator.score(generation_of(answer=answer, context=(str(next(rows())["context"]),)))
    assert score is not None
    assert score.spans is not None
    assert (score.spans[0].support or 0) > (score.spans[1].support or 0)


@pytest.mark.slow
def test_forests_of_another_training_are_refused(data, minilm, trained, tmp_path) -> None:
    """What they said of sentences is not taken for what they say of others."""
    with pytest.raises(SystemExit, match=r"--forests has 119 sentences .* have 120"):
        finished(data, minilm, trained, tmp_path, missing=1)


@pytest.mark.slow
def test_a_stopped_training_goes_on(data, minilm, tmp_path) -> None:
    """The layers are the same, to the last bit, whether or not the run was broken off."""
    from training.groundedness_model import fit

    short = ("--folds", "1", "--epochs", "2", "--pieces", "400", "--answers", "30")
    train(data, minilm, tmp_path / "whole", *short)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "_SAVED_EVERY_STEPS", 2)
        save, saved = fit._Run.save, []

        def stopping(*args: object) -> None:
            save(*args)
            saved.append(args)
            if len(saved) == 1:
                raise KeyboardInterrupt

        patch.setattr(fit._Run, "save", stopping)
        with pytest.raises(KeyboardInterrupt):
            train(data, minilm, tmp_path / "stopped", *short)
        train(data, minilm, tmp_path / "stopped", *short)
    one, other = (
        torch.load(tmp_path / run / "1.upper", weights_only=True) for run in ("whole", "stopped")
    )
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_claims_train_beside_answers(data, minilm, tmp_path, capsys, monkeypatch) -> None:
    """They change the layers, and how marks are scaled they do not."""
    claim = Labelled(id="", group="", context="Owls fly.", answer="Owls swim.", label=1)
    monkeypatch.setattr("training.groundedness_model.__main__.claims", lambda _: [claim] * 9)
    short = ("--folds", "1", "--pieces", "400", "--answers", "30")
    train(data, minilm, tmp_path / "alone", *short)
    train(data, minilm, tmp_path / "both", *short, "--claims", str(tmp_path))
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["claims"] for line in told if "claims" in line] == [0, 9]
    alone, both = (
        torch.load(tmp_path / run / "1.upper", weights_only=True) for run in ("alone", "both")
    )
    same = {name for name in alone if torch.equal(alone[name], both[name])}
    assert {"mean", "scale"} <= same
    assert "sentence.weight" not in same


def test_the_embedding_baseline_finds_what_is_copied_near(minilm: Path) -> None:
    """A sentence of the passages is at no distance; an answer without a word is farthest."""
    from benchmarks.grounding.cosine import Embedder, distance

    context = "The library of Bonn was founded in 1807. It has two floors."
    answers = [
        Labelled(id=text, group="g", context=context, answer=text, label=0)
        for text in ("It has two floors.", "Zebras queue for jazz.", "")
    ]
    copied, foreign, empty = distance(answers, Embedder(minilm))
    assert copied == pytest.approx(0, abs=1e-5)
    assert copied < foreign < empty == 1
