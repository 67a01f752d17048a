"""llama.cpp's own HTTP server in a process, by the prebuilt `xllamacpp`.

Run as a program it serves until its standard input is closed, so that no server outlives its test;
with a port of the caller's, until it is stopped.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DRAFT_TOKENS = 4
NGRAM_TOKENS = 4


@contextmanager
def serving(
    model: Path, *, draft: Path | None = None, ngram: bool = False, slots: int = 1
) -> Iterator[str]:
    """Serve the GGUF file on a free port, so many requests at a time, and yield the URL."""
    command = [sys.executable, __file__, str(model), "--slots", str(slots)]
    command += ["--draft", str(draft)] if draft else []
    command += ["--ngram"] if ngram else []
    with (
        tempfile.TemporaryFile("w+") as log,  # a pipe that nobody empties would stop the server
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            process.communicate()
            log.seek(0)
            raise RuntimeError(f"llama.cpp did not start: {log.read()[-2000:]}")
        try:
            yield address
        finally:
            process.communicate()


def _serve(
    model: str, draft: str | None, *, ngram: bool, port: int, width: int, slots: int
) -> None:
    import xllamacpp

    kinds = xllamacpp.common_speculative_type
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"served"}
    params.n_ctx = 1024 * slots
    params.n_parallel = slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = params.endpoint_slots = True
    params.cache_prompt = False
    params.hostnames = ["127.0.0.1"]
    params.port = port
    if draft is not None:
        params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        params.speculative.draft.mparams.path = draft
        params.speculative.draft.n_max = width
        params.speculative.draft.cpuparams.n_threads = 1
        params.speculative.draft.cpuparams_batch.n_threads = 1
    if ngram:
        params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        params.speculative.ngram_simple.size_n = (
            2  # the default, 12, finds nothing in short prompts
        )
        params.speculative.ngram_simple.size_m = NGRAM_TOKENS
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    if port:
        signal.pause()
    sys.stdin.read()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--draft")
    parser.add_argument("--ngram", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--draft-tokens", type=int, default=DRAFT_TOKENS)
    parser.add_argument("--slots", type=int, default=1)
    arguments = parser.parse_args()
    _serve(
        arguments.model,
        arguments.draft,
        ngram=arguments.ngram,
        port=arguments.port,
        width=arguments.draft_tokens,
        slots=arguments.slots,
    )
