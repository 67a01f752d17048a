"""HTTP requests to a collector, with errors as `ClientError`."""

import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status

from collector.client.arrow_body import ArrowBody
from collector.contract import from_document, to_document
from collector.errors import ClientError

PROTOBUF: Final = "application/x-protobuf"
_ARROW: Final = "application/vnd.apache.arrow.stream"
Query = Mapping[str, str | float | bool | Sequence[str] | None]
R = TypeVar("R")


class Connection:
    """Sends requests to one collector; every method raises `ClientError` if one fails."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        ca_file: str | Path | None,
        timeout_s: float,
        transport: httpx.BaseTransport | None,
    ) -> None:
        """Take the arguments of `Client`."""
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        try:
            self._http = httpx.Client(
                base_url=self._url,
                timeout=timeout_s,
                transport=transport,
                headers={"Authorization": f"Bearer {key}"} if key else None,
                verify=_ssl_context(ca_file) if ca_file else True,
            )
        except httpx.InvalidURL as exc:
            raise ClientError(f"{url}: is no URL ({exc}); try http://localhost:4318") from exc

    def close(self) -> None:
        """Close connections."""
        self._http.close()

    def pages(self, kind: type[R], path: str, query: Query, key: str) -> Iterator[R]:
        """Yield the records under `key` of every page."""
        after: str | None = None
        while True:
            body = self.get(path, {**query, "after": after})
            yield from self.records(kind, body, key)
            after = body["next"]
            if after is None:
                return

    def list(
        self, kind: type[R], key: str, path: str, query: Query | None = None, *, wait_s: float = 0
    ) -> tuple[R, ...]:
        """Return the records under `key` of the response to a GET."""
        return self.records(kind, self.get(path, query, wait_s=wait_s), key)

    def get(
        self, path: str, query: Query | None = None, *, wait_s: float = 0
    ) -> Any:  # Any: a JSON value
        """Return the JSON response to a GET; `wait_s` extends the timeout."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        timeout = httpx.Timeout(self._timeout_s + wait_s)
        return self.json(self.send("GET", path, params=given, timeout=timeout))

    @contextmanager
    def arrow(self, path: str, query: Query, error: type[Exception]) -> Iterator[ArrowBody]:
        """Open an Arrow stream; raises `ClientError` if it is truncated, also while it is read.

        `error` is what its reader raises for data that are no Arrow.
        """
        given = {name: value for name, value in query.items() if value is not None}
        with self._translated_errors(path):
            response = self._http.send(
                self._http.build_request("GET", path, params=given, headers={"Accept": _ARROW}),
                stream=True,
            )
        with closing(response), self._translated_errors(path):
            if not response.is_success:
                response.read()
                raise _refused(response)
            body = ArrowBody(response.iter_bytes())
            try:
                yield body
            except (error, OSError) as exc:
                if body.failure is not None:
                    raise body.failure from exc
                if body.is_truncated:
                    raise self._truncated(path) from exc
                if isinstance(exc, error):
                    raise self.unexpected_answer(exc) from exc
                raise  # the caller's own error, such as a full disk
            if body.is_truncated:
                raise self._truncated(path)

    def _truncated(self, path: str) -> ClientError:
        return ClientError(f"{self._url}{path}: the answer broke off; ask again")

    def post(self, path: str, document: object) -> httpx.Response:
        """Post a JSON document."""
        try:
            body = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as exc:
            raise ClientError(f"{self._url}{path}: cannot be sent: {exc}") from exc
        return self.send("POST", path, content=body, headers={"Content-Type": "application/json"})

    def post_record(self, kind: type[R], path: str, record: object) -> R:
        """Post a record, and return the one that the response describes."""
        return self.record(kind, self.json(self.post(path, to_document(record))))

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request and return its successful response; `options` are those of httpx."""
        with self._translated_errors(path):
            response = self._http.request(method, path, **options)
        if not response.is_success:
            raise _refused(response)
        return response

    @contextmanager
    def _translated_errors(self, path: str) -> Iterator[None]:
        """Raise `ClientError` for errors of httpx."""
        try:
            yield
        except httpx.ConnectError as exc:
            raise ClientError(
                f"{self._url}: nothing answers ({exc}); is `draftgate serve` running?"
            ) from exc
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            reason = str(exc) or type(exc).__name__
            raise ClientError(
                f"{self._url}{path}: no answer ({reason}); is this a collector, and is it busy?"
            ) from exc

    def json(self, response: httpx.Response) -> Any:  # Any: a JSON value
        """Return the response's JSON."""
        try:
            return response.json()
        except ValueError as exc:
            raise self.unexpected_answer(exc) from exc

    def records(self, kind: type[R], body: Any, key: str) -> tuple[R, ...]:  # Any: a JSON value
        """Return the records under `key` of a response."""
        try:
            documents = body[key]
            return tuple(from_document(kind, document) for document in documents)
        except (KeyError, TypeError, ValueError) as exc:
            raise self.unexpected_answer(exc) from exc

    def record(self, kind: type[R], document: object) -> R:
        """Return the record that a document describes."""
        try:
            return from_document(kind, document)
        except ValueError as exc:
            raise self.unexpected_answer(exc) from exc

    def unexpected_answer(self, exc: Exception) -> ClientError:
        """Return the error for a response that no collector of this version sends."""
        return ClientError(
            f"{self._url}: answered what a collector of this version does not ({exc}); "
            "check the URL, and that both are the same version"
        )


class ApiResource:
    """The requests of one subject of the API, over the client's connection."""

    _connection: Connection


def rollout_path(rollout: str, subject: str) -> str:
    """Return the path of a rollout's subject, such as its `switch`."""
    return f"/api/v1/rollouts/{quote(rollout, safe='')}/{subject}"


def _ssl_context(ca_file: str | Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as exc:
        raise ClientError(
            f"{ca_file}: cannot be used as CA certificates ({exc.strerror or exc}); "
            "wanted a PEM file"
        ) from exc


def _refused(response: httpx.Response) -> ClientError:
    asked = response.url.copy_with(query=None)
    return ClientError(f"{asked}: {_refusal(response)}", status=response.status_code)


def _refusal(response: httpx.Response) -> str:
    """Return the status, and the message if the body is a problem or a google.rpc.Status."""
    status = response.status_code
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "unknown status"
    detail = _detail(response)
    return f"{status} {phrase}: {detail}" if detail else f"{status} {phrase}"


def _detail(response: httpx.Response) -> str | None:
    try:
        if response.headers.get("content-type") == PROTOBUF:
            return str(Status.FromString(response.content).message)
        body = response.json()
    except (DecodeError, ValueError):
        return None
    return (body.get("detail") or body.get("message")) if isinstance(body, dict) else None
