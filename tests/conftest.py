"""What tests of several packages share: a tiny pair of models, a free port, a browser."""

import gc
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forked_commands
import pytest
from hypothesis import settings
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

# What a script leaves in the background ignores SIGINT, and commands would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Several workers share the cores: a library that starts a thread for each of them is slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A model that is not on the disk is not there: nothing is asked of the hub, and tried again.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Servers of several workers cannot all have the default port.
os.environ.setdefault("DRAFTGATE_GRPC_PORT", "0")
settings.register_profile("shared cores", settings(), deadline=None)
settings.load_profile("shared cores")

SENTENCE = "the order was shipped on monday by north way and will arrive soon thank you"
WORDS = SENTENCE.split()


@pytest.fixture(scope="session", autouse=True)
def _forked_commands() -> Iterator[None]:
    """Have `draftgate` in processes of its own without importing everything for each."""
    with forked_commands.installed():
        yield


@pytest.fixture(scope="module", autouse=True)
def _loaded_set_aside() -> None:
    """Have collections look at what a file's tests made, and not at all that a worker has loaded.

    After some hundred tests that is a second of CPU for every run and router.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of a target and a draft with one tokenizer and random weights, and of a stranger.

    Random models answer nonsense, deterministically; they agree now and then, so that acceptance
    is neither 0 nor 1.
    """
    root = tmp_path_factory.mktemp("pair")
    target = make_model(root / "target", layers=2, seed=1)
    return {
        "target": target,
        "draft": make_draft(target, root / "draft"),
        "stranger": make_model(root / "stranger", layers=1, seed=3, words=[*WORDS, "zebra"]),
    }


def make_model(folder: Path, *, layers: int, seed: int, words: list[str] = WORDS) -> Path:
    """Write a random Llama with a word-level tokenizer to the folder."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["<end>", "<pad>", "<user>", "<bot>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<end>", pad_token="<pad>", unk_token="<pad>"
    )
    wrapped.chat_template = (
        "{% for m in messages %}<user> {{ m['content'] }} {% endfor %}"
        "{% if add_generation_prompt %}<bot>{% endif %}"
    )
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=1,
        initializer_range=0.5,
    )
    save(LlamaForCausalLM(config), wrapped, folder)
    return folder


def make_draft(target: Path, folder: Path) -> Path:
    """Write the target's first layer as a draft, so that it agrees now and then."""
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    full = LlamaForCausalLM.from_pretrained(target)
    config = full.config.__class__(**(full.config.to_dict() | {"num_hidden_layers": 1}))
    config.layer_types = None
    draft = LlamaForCausalLM(config)
    with torch.no_grad():
        draft.load_state_dict(full.state_dict(), strict=False)
    save(draft, AutoTokenizer.from_pretrained(target), folder)
    return folder


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write model and tokenizer as `save_pretrained` does."""
    model.generation_config.eos_token_id = 0
    model.generation_config.pad_token_id = 1
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


# Without these, Chromium asks its maker's servers on every start.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def free_port() -> Callable[[], int]:
    """Return what finds a port that nothing listens on."""

    def find() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            return port

    return find


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a Chromium; skip if none is installed, but fail in CI."""
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        missing = "no Chromium on the PATH (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Start Debian's Chromium."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Return a viewer in Berlin, whose browser keeps the scripts that it has fetched."""
    viewer = browser.new_context(timezone_id="Europe/Berlin")
    yield viewer
    viewer.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """Open a page; fail on a dialog, a script's error, a raw exception or a stranger."""
    opened = context.new_page()
    opened.set_default_timeout(120_000)  # ms
    opened.set_viewport_size({"width": 1440, "height": 1000})
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(f"script error: {error}"))
    opened.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))

    def watch(request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            problems.append(f"asked {request.url}")
        if ":9/" in request.url:
            problems.append(f"an answer's image was fetched: {request.url}")

    opened.on("request", watch)
    yield opened
    expect(opened.get_by_test_id("stException")).to_have_count(0)
    opened.evaluate("localStorage.clear()")
    opened.close()
    context.clear_cookies()
    assert problems == []
