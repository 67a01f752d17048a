"""Ask a model server as an application with Langfuse's OpenAI client does.

Usage: langfuse_client.py SERVER COLLECTOR KEY
"""

import contextlib
import sys
from typing import Any

from langfuse import Langfuse, openai, propagate_attributes

MESSAGES = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "capital of France?"},
]


def ask(client: Any, prompt_id: str, **asked: Any) -> Any:
    """Ask, with what Draftgate wants to know in the generation's metadata."""
    ours = {
        "draftgate.rollout": "k4",
        "draftgate.arm": "candidate",
        "draftgate.cohort": "chat",
        "draftgate.prompt.id": prompt_id,
    }
    return client.chat.completions.create(messages=MESSAGES, metadata=ours, **asked)


def main() -> None:
    """Ask once at a time, once as a stream, and once for a model that is not there."""
    server, collector, key = sys.argv[1:]
    tracing = Langfuse(public_key="anything", secret_key=key, base_url=collector)
    client = openai.OpenAI(base_url=server + "/v1", api_key="none", max_retries=0)
    with propagate_attributes(session_id="s1"):
        ask(client, "plain", model="tiny", max_tokens=5, temperature=0.0, top_p=0.9)
        for _ in ask(
            client, "stream", model="tiny", stream=True, stream_options={"include_usage": True}
        ):
            pass
        with contextlib.suppress(openai.openai.NotFoundError):
            ask(client, "missing", model="missing")
    tracing.shutdown()


main()
