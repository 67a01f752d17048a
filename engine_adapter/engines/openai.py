"""Any other server of the OpenAI API: usage and text, and nothing of speculation.

`usage.completion_tokens_details.accepted_prediction_tokens` counts tokens of a prediction that the
*client* sent with the request (Predicted Outputs). It says nothing of a draft, so it is not read.
"""

from typing import ClassVar

from engine_adapter.engines.answer import AnswerReader


class OpenAIReader(AnswerReader):
    """Reads what the OpenAI API itself has: text, finish reason, usage, cached tokens."""

    provider: ClassVar[str] = "openai"
