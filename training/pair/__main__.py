"""Train the demo's pair: `python -m training.pair --out demo/models`."""

import argparse
import json
import platform
import sys
import tempfile
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers

from training.desk import COHORTS, examples
from training.pair.batches import batches
from training.pair.fit import Fitted, Plan, fit
from training.pair.measure import measure
from training.pair.pair import grow, load, new_draft, parameter_count, save
from training.pair.tokenizer import train_tokenizer

_ENDLESS = sys.maxsize
_TOKENIZER_EXAMPLES_PER_COHORT = 2000
_HELDOUT_PER_COHORT = 200


def main() -> None:
    """Train into a temporary folder, then move the results into place."""
    args = _arguments()
    # One thread: sums are then added in a fixed order, so the same seed gives the same bytes.
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.out.parent, prefix=".training-") as scratch:
        new, old = Path(scratch, "new"), Path(scratch, "old")
        old.mkdir()
        _train(args, new)
        _exchange(new, args.out, old)
    _tell(f"wrote {args.out}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m training.pair", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of the models")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vocab-size", type=int, default=2048, help="at most")
    parser.add_argument("--batch-size", type=int, default=32, help="examples a step")
    parser.add_argument("--draft-steps", type=int, default=250)
    parser.add_argument("--target-steps", type=int, default=1500)
    parser.add_argument("--target-layers", type=int, default=4)
    return parser.parse_args()


def _train(args: argparse.Namespace, folder: Path) -> None:
    tokenizer = _tokenizer(args.seed, args.vocab_size)
    _tell(f"{len(tokenizer)} tokens")
    draft = new_draft(tokenizer, args.seed)
    draft_fit = _fit("draft", draft, tokenizer, Plan(args.draft_steps, 0.006, 0.002), args)
    target = grow(draft, tokenizer, args.target_layers, args.seed + 1)
    target_fit = _fit("target", target, tokenizer, Plan(args.target_steps, 0.006, 0.001), args)
    save(draft, tokenizer, folder / "draft")
    save(target, tokenizer, folder / "target")
    report = {
        "command": "python -m training.pair",
        "options": {key: value for key, value in vars(args).items() if key != "out"},
        "draft": {"parameters": parameter_count(draft), **draft_fit._asdict()},
        "target": {"parameters": parameter_count(target), **target_fit._asdict()},
        "heldout": _heldout(folder, tokenizer, args.seed),
        "versions": {
            "python": platform.python_version(),
            "tokenizers": tokenizers.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }
    text = json.dumps(report, indent=2) + "\n"
    (folder / "report.json").write_text(text)
    _tell(text)


def _tokenizer(seed: int, vocab_size: int) -> Any:  # Any: transformers ships no types
    sample = examples("train", seed, _TOKENIZER_EXAMPLES_PER_COHORT)
    texts = (text for example in sample for text in (example.prompt, example.answer))
    return train_tokenizer(texts, vocab_size)


def _fit(
    name: str,
    model: Any,  # Any: transformers ships no types
    tokenizer: Any,
    plan: Plan,
    args: argparse.Namespace,
) -> Fitted:
    # Target and draft train on different examples of the same split.
    seed = args.seed + (name == "target")
    stream = batches(examples("train", seed, _ENDLESS), tokenizer, args.batch_size, seed)
    return fit(model, stream, plan, lambda line: _tell(f"{name}  {line}"))


def _heldout(folder: Path, tokenizer: Any, seed: int) -> dict[str, object]:
    """Measure the saved models, whose weights are rounded to float16."""
    chosen = islice(examples("heldout", seed, _ENDLESS), _HELDOUT_PER_COHORT * len(COHORTS))
    figures = measure(load(folder / "target"), load(folder / "draft"), tokenizer, chosen)
    return {cohort: asdict(cohort_figures) for cohort, cohort_figures in figures.items()}


def _exchange(new: Path, out: Path, old: Path) -> None:
    """Move each result into place atomically, so that nobody reads a partial one."""
    for result in sorted(new.iterdir()):
        place = out / result.name
        if place.exists():
            place.replace(old / result.name)
        result.replace(place)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
