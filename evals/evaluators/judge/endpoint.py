"""Client of a chat completions endpoint, with retries, a rate limit and a cache."""

import hashlib
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx

from evals.evaluators.judge.cache import Cache
from evals.evaluators.judge.settings import JudgeSettings

Message = Mapping[str, str]
_MAX_TOKENS = 1024
_RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class JudgeError(RuntimeError):
    """Every attempt failed; the message gives the last response or error."""


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """The judge's reply, with its tokens and cost."""

    text: str
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """None if the tokens or prices are unknown; 0 for a cached reply."""


class Endpoint:
    """One judge's endpoint; not safe to use from several threads. `close` ends its connections."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._cache = Cache(settings.cache) if settings.cache else None
        headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        self._http = httpx.Client(headers=headers, timeout=settings.timeout_s)
        self._next_s = 0.0

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def complete(self, messages: Sequence[Message], *, sample: int = 0) -> JudgeAnswer:
        """Return the judge's reply, from the cache if the same messages and `sample` are in it.

        Raises `JudgeError` after the last attempt, or at once for a status that is not retried.
        """
        body = {
            "model": self._settings.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": _MAX_TOKENS,
        }
        digest = _digest(self._settings.url, body, sample)
        if self._cache is not None and (cached := self._cache.get(digest)) is not None:
            return JudgeAnswer(str(cached["text"]), None, None, 0.0)
        answer = self._request(body)
        if self._cache is not None:
            self._cache.put(digest, {"text": answer.text})
        return answer

    def _request(self, body: Mapping[str, object]) -> JudgeAnswer:
        failure = "nothing"
        for attempt in range(self._settings.attempts):
            self._wait_for_rate_limit()
            wait_s = min(2.0**attempt * (0.5 + random.random()), self._settings.max_wait_s)  # noqa: S311
            try:
                response = self._http.post(f"{self._settings.url}/chat/completions", json=body)
            except httpx.HTTPError as exc:
                failure = f"{type(exc).__name__}: {exc}"
            else:
                if response.status_code == HTTPStatus.OK:
                    answer = self._read(response)
                    if answer is not None:
                        return answer
                    failure = f"no chat completion: {response.text[:100]!r}"
                else:
                    failure = f"HTTP {response.status_code}: {response.text[:100]!r}"
                    if response.status_code not in _RETRIED_STATUSES:
                        break
                    if (retry_after_s := _retry_after_s(response)) is not None:
                        wait_s = min(retry_after_s, self._settings.max_wait_s)
            if attempt + 1 < self._settings.attempts:
                time.sleep(wait_s)
        raise JudgeError(f"the judge at {self._settings.url} said {failure}")

    def _wait_for_rate_limit(self) -> None:
        if not self._settings.requests_per_s:
            return
        now = time.monotonic()
        time.sleep(max(0.0, self._next_s - now))
        self._next_s = max(now, self._next_s) + 1 / self._settings.requests_per_s

    def _read(self, response: httpx.Response) -> JudgeAnswer | None:
        """Return the first choice as an answer; `None` if the body has no text there."""
        try:
            document = response.json()
            text = document["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError):
            return None
        if not isinstance(text, str):
            return None
        usage = document.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        tokens = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        prompt, completion = (n if isinstance(n, int) and n >= 0 else None for n in tokens)
        return JudgeAnswer(text, prompt, completion, self._cost_usd(prompt, completion))

    def _cost_usd(self, prompt: int | None, completion: int | None) -> float | None:
        prices = self._settings.prices
        if prices is None or prompt is None or completion is None:
            return None
        return (prompt * prices.input_usd + completion * prices.output_usd) / 1e6


def _digest(url: str, body: Mapping[str, object], sample: int) -> str:
    question = json.dumps([url, body, sample], sort_keys=True)
    return hashlib.sha256(question.encode()).hexdigest()


def _retry_after_s(response: httpx.Response) -> float | None:
    """Return Retry-After (a number of seconds, or a date) in seconds from now."""
    header = response.headers.get("Retry-After", "")
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (until - datetime.now(tz=UTC)).total_seconds())
