"""Asks a chat-completions endpoint, patiently."""

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
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class JudgeError(RuntimeError):
    """The judge did not answer; says what it said last."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the judge said, and what that took."""

    text: str
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """None where tokens or prices are not known; 0 where it was remembered."""


class Endpoint:
    """One judge; not safe to use from several threads. `close` ends its connections."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._cache = Cache(settings.cache) if settings.cache else None
        headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        self._http = httpx.Client(headers=headers, timeout=settings.timeout_s)
        self._next_s = 0.0

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def ask(self, messages: Sequence[Message], *, sample: int = 0) -> Answer:
        """Return the judge's answer; the same question is asked once, for each `sample`.

        Raises `JudgeError` after the last attempt, or at once where the request itself is refused.
        """
        body = {
            "model": self._settings.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": _MAX_TOKENS,
        }
        digest = _digest(self._settings.url, body, sample)
        if self._cache is not None and (kept := self._cache.get(digest)) is not None:
            return Answer(str(kept["text"]), None, None, 0.0)
        answer = self._asked(body)
        if self._cache is not None:
            self._cache.put(digest, {"text": answer.text})
        return answer

    def _asked(self, body: Mapping[str, object]) -> Answer:
        said = "nothing"
        for attempt in range(self._settings.attempts):
            self._keep_to_rate()
            wait_s = min(2.0**attempt * (0.5 + random.random()), self._settings.max_wait_s)  # noqa: S311
            try:
                response = self._http.post(f"{self._settings.url}/chat/completions", json=body)
            except httpx.HTTPError as exc:
                said = f"{type(exc).__name__}: {exc}"
            else:
                if response.status_code == HTTPStatus.OK:
                    answer = self._read(response)
                    if answer is not None:
                        return answer
                    said = f"no chat completion: {response.text[:100]!r}"
                else:
                    said = f"HTTP {response.status_code}: {response.text[:100]!r}"
                    if response.status_code not in _RETRIED:
                        break
                    asked_s = _asked_wait_s(response)
                    wait_s = wait_s if asked_s is None else min(asked_s, self._settings.max_wait_s)
            if attempt + 1 < self._settings.attempts:
                time.sleep(wait_s)
        raise JudgeError(f"the judge at {self._settings.url} said {said}")

    def _keep_to_rate(self) -> None:
        if not self._settings.requests_per_s:
            return
        now = time.monotonic()
        time.sleep(max(0.0, self._next_s - now))
        self._next_s = max(now, self._next_s) + 1 / self._settings.requests_per_s

    def _read(self, response: httpx.Response) -> Answer | None:
        """Return the first choice's text, None where there is none."""
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
        given, made = (n if isinstance(n, int) and n >= 0 else None for n in tokens)
        return Answer(text, given, made, self._cost_usd(given, made))

    def _cost_usd(self, given: int | None, made: int | None) -> float | None:
        prices = self._settings.prices
        if prices is None or given is None or made is None:
            return None
        return (given * prices.input_usd + made * prices.output_usd) / 1e6


def _digest(url: str, body: Mapping[str, object], sample: int) -> str:
    question = json.dumps([url, body, sample], sort_keys=True)
    return hashlib.sha256(question.encode()).hexdigest()


def _asked_wait_s(response: httpx.Response) -> float | None:
    """Return what Retry-After asks for, in seconds: a number or a date."""
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
