"""Any other server of the OpenAI API: text and usage, no speculation counts.

`usage.completion_tokens_details.accepted_prediction_tokens` counts tokens of a prediction that the
*client* sent with the request (Predicted Outputs), not draft tokens, so it is not read.
"""

from typing import ClassVar

from engine_adapter.engines.answer import AnswerReader
from engine_adapter.engines.base import Probe
from engine_adapter.engines.http_engine import HttpEngine
from engine_adapter.engines.self_description import SelfDescription


class OpenAIReader(AnswerReader):
    """Reads the OpenAI API's own fields: text, finish reason, usage, cached tokens."""

    provider: ClassVar[str] = "openai"


class OpenAIEngine(HttpEngine):
    """A server that streams chat completions; it is probed without generating tokens."""

    reader = OpenAIReader
    questions: ClassVar[int] = 0
    metrics_route: ClassVar[str | None] = None

    @classmethod
    def interpret(cls, said: SelfDescription) -> Probe:
        """Advise that such a server reports no speculation counts."""
        del said
        advice = (
            "engine: openai knows no engine's own counts; name the engine (vllm, sglang, "
            "llamacpp, …) to have its acceptance recorded"
        )
        return Probe(per_request_metrics=False, advice=(advice,))
