"""Answers to gRPC calls, as the headers and messages of HTTP/2."""

import base64
from typing import Final, NamedTuple
from urllib.parse import quote

from google.protobuf.message import Message
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

Headers = list[tuple[str, str]]

BEGIN: Final[Headers] = [
    (":status", "200"),
    ("content-type", "application/grpc"),
    ("grpc-accept-encoding", "identity,deflate,gzip,zstd"),
]
NO_GRPC: Final[Headers] = [(":status", "415"), ("content-length", "0")]
"""The whole answer to a request that is no gRPC."""
_UNQUOTED: Final = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""Characters of a `grpc-message` that are sent as they are."""


class CallReply(NamedTuple):
    """The answer to a call."""

    trailers: Headers
    message: bytes = b""
    """With gRPC's prefix; empty if the call is refused."""


def answered(message: Message) -> CallReply:
    """Return the reply with a response message."""
    data: bytes = message.SerializeToString()
    return CallReply([("grpc-status", "0")], b"\0" + len(data).to_bytes(4, "big") + data)


def refused(status: Status) -> CallReply:
    """Return the reply with an error, in the trailers that gRPC and OpenTelemetry's SDKs read."""
    trailers = [
        ("grpc-status", str(status.code)),
        ("grpc-message", quote(status.message, safe=_UNQUOTED)),
        ("grpc-status-details-bin", _binary(status)),
    ]
    retry = RetryInfo()
    if any(detail.Unpack(retry) for detail in status.details):
        trailers.append(("google.rpc.retryinfo-bin", _binary(retry)))
    return CallReply(trailers)


def internal_error() -> CallReply:
    """Return the reply for a bug, which the log describes."""
    return refused(
        Status(code=Code.INTERNAL, message="an error in the collector; its log says which")
    )


def _binary(message: Message) -> str:
    return base64.b64encode(message.SerializeToString()).rstrip(b"=").decode()
