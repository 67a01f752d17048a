"""A process that speaks ClickHouse's HTTP interface, with chdb as its engine; it can inject faults.

It accepts the requests of clickhouse-connect: the statement in the body or in the parameter
`query`, rows of an INSERT as the body, settings as parameters, bodies compressed or not. Multipart
bodies, sessions and blocks of the native protocol are not supported and raise errors.
"""

import base64
import gzip
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

USER: Final = "draftgate"
PASSWORD: Final = "s3cret of/tests@é"


@dataclass(frozen=True)
class Fault:
    """What happens to statements that a pattern is found in."""

    pattern: str
    do: str = "answer"
    """`answer` with an error, `die` or `cut` the connection; after `carry_out`, if that is set."""
    carry_out: bool = False
    status: int = 500
    code: int | None = None
    text: str = "made by a test"
    wait_s: float = 0.0
    """Before anything else."""
    times: int = 10**9
    skip: int = 0
    """Statements that come before the first one it happens to."""


@dataclass(frozen=True)
class Received:
    """One statement, as the server saw it."""

    statement: str
    """Its first 4,000 characters."""
    method: str
    status: int
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    read_rows: int


@dataclass
class Server:
    """A server that can be killed, and started again on its port and its folder."""

    folder: Path
    port: int
    idle_s: float = 10.0
    process: "subprocess.Popen[str]" = field(init=False)

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        arguments = [str(self.folder), str(self.port), str(self.idle_s)]
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), *arguments],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        """End it without warning."""
        self.process.kill()
        self.wait()

    def wait(self) -> None:
        """Wait for the end that a fault brings."""
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def url(self, database: str, password: str = PASSWORD, **parameters: object) -> str:
        """Return the analytics URL of a database."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        where = f"{USER}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"
        return f"clickhousedb://{where}" + (f"?{query}" if query else "")

    def fault(self, *faults: Fault) -> None:
        """Have these happen from now on, the first that fits; none of them heals the server."""
        self._control(json.dumps([asdict(fault) for fault in faults]).encode())

    def log(self) -> list[Received]:
        """Return the statements since the last call, in the order in which they ended."""
        return [Received(**entry) for entry in json.loads(self._control(None))]

    def _control(self, body: bytes | None) -> bytes:
        # No proxy of the environment's between.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}/_control", body) as answer:
            found: bytes = answer.read()
            return found


@contextmanager
def running(folder: Path, *, idle_s: float = 10.0) -> Iterator[Server]:
    """Serve a folder's database on a free port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    server = Server(folder, port, idle_s)
    server.start()
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


# The process

_NO_SETTINGS: Final = {"database", "query", "query_id", "wait_end_of_query"}
_NOT_HERE: Final = {"session_id", "compress", "decompress", "user", "password", "role"}
# Asked for by the client to find out whether it gets it: here it does not.
_IGNORED: Final = {"client_protocol_version"}
_INSERT: Final = re.compile(rb"\s*(INSERT INTO .+?) FORMAT (\w+)\s*(?:\n|$)", re.DOTALL)
_READS: Final = re.compile(r"\s*(SELECT|WITH|SHOW|DESCRIBE|EXISTS|EXPLAIN)\b", re.IGNORECASE)
_STATUS: Final = {
    **dict.fromkeys((192, 193, 516), 403),
    194: 401,
    **dict.fromkeys((46, 47, 50, 60, 81, 115), 404),
    62: 400,
    48: 501,
}
"""HTTP's status of ClickHouse's codes; 500 is that of the others."""


class _RefusedError(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"Code: {code}. DB::Exception: {text}")


class _Engine:
    """chdb on a folder: each statement on a handle of its own, with its own settings."""

    def __init__(self, folder: str) -> None:
        self._chdb: Any = importlib.import_module("chdb")
        self._folder = folder
        self._held = self._chdb.connect(folder)

    def carry_out(
        self, statement: bytes, rows: bytes | None, database: str | None, settings: dict[str, str]
    ) -> tuple[bytes, int]:
        """Return the answer and how many rows were read for it."""
        with (
            closing(self._chdb.connect(self._folder)) as handle,
            tempfile.NamedTemporaryFile() as f,
        ):
            if settings:
                each = (f"{name} = {_literal(value)}" for name, value in settings.items())
                handle.query(f"SET {', '.join(each)}")
            if database is not None:
                handle.query(f"USE {database}")
            if rows is not None:
                f.write(rows)
                f.flush()
                into, _, form = statement.rpartition(b" FORMAT ")
                statement = b"%s FROM INFILE '%s' FORMAT %s" % (into, f.name.encode(), form)
            done = handle.query(statement.decode(), "TabSeparated")
            return done.bytes() or b"", done.storage_rows_read()


def _literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


class _State:
    def __init__(self, folder: str) -> None:
        self.engine = _Engine(folder)
        self.lock = threading.Lock()
        self.faults: list[Fault] = []
        self.seen: dict[int, int] = {}
        self.log: list[Received] = []

    def fault_of(self, statement: str) -> Fault | None:
        with self.lock:
            for number, fault in enumerate(self.faults):
                if re.search(fault.pattern, statement):
                    seen = self.seen[number] = self.seen.get(number, 0) + 1
                    return fault if fault.skip < seen <= fault.skip + fault.times else None
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet an answer
    state: _State

    def log_message(self, *args: object, **kwargs: object) -> None:
        """Say nothing: there is a log to ask for."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def _answer(self, body: bytes) -> None:
        url = urlsplit(self.path)
        if url.path == "/_control":
            self._control(body)
        elif url.path == "/ping":
            self._reply(200, b"Ok.\n")
        else:
            self._carry_out(dict(parse_qsl(url.query, keep_blank_values=True)), body)

    def _carry_out(self, parameters: dict[str, str], body: bytes) -> None:
        headers, status, read_rows = {}, 200, 0
        statement = parameters.get("query", "").encode()
        shown = (statement or body)[:4000].decode(errors="replace")
        try:
            fault = self.state.fault_of(shown)
            if fault is not None and self._suffer(fault, lambda: self._run(parameters, body)):
                return
            answer, read_rows = self._run(parameters, body)
            if _READS.match(shown):
                headers["X-ClickHouse-Format"] = _format_of(statement or body)
            encoding = self._encoding(parameters)
            if encoding:
                headers["Content-Encoding"], answer = encoding, _CODINGS[encoding][0](answer)
        except (RuntimeError, _RefusedError) as exc:
            text = str(exc)
            code = int(match[1]) if (match := re.search(r"Code: (\d+)", text)) else 1001
            status, answer = _STATUS.get(code, 500), f"{text} (version 26.9.1.1)\n".encode()
            headers["X-ClickHouse-Exception-Code"] = str(code)
        kept = {k: v for k, v in parameters.items() if k != "query"}
        entry = Received(shown, self.command, status, kept, dict(self.headers), read_rows)
        with self.state.lock:
            self.state.log.append(entry)
        headers["X-ClickHouse-Summary"] = json.dumps({"read_rows": str(read_rows)})
        self._reply(status, answer, headers)

    def _run(self, parameters: Mapping[str, str], body: bytes) -> tuple[bytes, int]:
        self._authenticate()
        if not_here := _NOT_HERE & parameters.keys():
            raise _RefusedError(48, f"not of this server: {not_here}")
        settings = {k: v for k, v in parameters.items() if k not in _NO_SETTINGS | _IGNORED}
        if self.command == "GET":
            settings["readonly"] = "2"
        statement, rows = parameters.get("query", "").encode(), None
        if inline := None if statement else _INSERT.match(body):
            statement, rows = b"%s FORMAT %s" % inline.groups(), body[inline.end() :]
        elif statement and _INSERT.match(statement):
            rows = body
        else:
            statement += body
        return self.state.engine.carry_out(statement, rows, parameters.get("database"), settings)

    def _authenticate(self) -> None:
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        user, _, password = base64.b64decode(given).decode().partition(":")
        if kind != "Basic" or (user, password) != (USER, PASSWORD):
            text = f"{user}: Authentication failed: password is incorrect, or there is no user"
            raise _RefusedError(516, f"{text} with such name. (AUTHENTICATION_FAILED)")

    def _suffer(self, fault: Fault, run: Any) -> bool:  # Any: what carries the statement out
        """Say whether there is nothing more to answer."""
        time.sleep(fault.wait_s)
        if fault.carry_out:
            run()
        if fault.do == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.do == "cut":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif fault.do == "answer":
            known = {} if fault.code is None else {"X-ClickHouse-Exception-Code": str(fault.code)}
            text = fault.text if fault.code is None else f"Code: {fault.code}. {fault.text}"
            self._reply(fault.status, text.encode(), known)
        return fault.do != "nothing"

    def _encoding(self, parameters: Mapping[str, str]) -> str | None:
        if parameters.get("enable_http_compression") != "1":
            return None
        wanted = [one.strip() for one in self.headers.get("Accept-Encoding", "").split(",")]
        return next((one for one in wanted if one in _CODINGS), None)

    def _body(self) -> bytes:
        if "multipart" in self.headers.get("Content-Type", ""):
            raise NotImplementedError("multipart bodies")
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(self._chunks())
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        encoding = self.headers.get("Content-Encoding")
        return _CODINGS[encoding][1](body) if encoding else body

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _control(self, body: bytes) -> None:
        with self.state.lock:
            if self.command == "POST":
                self.state.faults = [Fault(**one) for one in json.loads(body)]
                self.state.seen = {}
            log = [asdict(one) for one in self.state.log]
            if self.command == "GET":
                self.state.log = []
        self._reply(200, json.dumps(log).encode())

    def _reply(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pieces = [body[at : at + 65536] for at in range(0, len(body), 65536)]
        for piece in (*pieces, b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))


def _format_of(statement: bytes) -> str:
    found = re.search(rb"\bFORMAT\s+(\w+)\s*$", statement)
    return found[1].decode() if found else "TabSeparated"


def _codings() -> dict[str, Sequence[Any]]:
    lz4: Any = importlib.import_module("lz4.frame")
    zstd: Any = importlib.import_module("backports.zstd")
    return {
        "lz4": (lz4.compress, lz4.decompress),
        "zstd": (zstd.compress, zstd.decompress),
        "gzip": (gzip.compress, gzip.decompress),
        "deflate": (zlib.compress, zlib.decompress),
    }


_CODINGS: dict[str, Sequence[Any]] = {}
"""Each with what compresses and what undoes it."""


class _Listener(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *about: object) -> None:
        """Let connections break: a killed collector is no fault of the server's."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*about)  # type: ignore[arg-type]


def main() -> None:
    """Serve the folder of the first argument on the port of the second until killed."""
    folder, port, idle_s = sys.argv[1:]
    _CODINGS.update(_codings())
    _Handler.state = _State(folder)
    _Handler.timeout = float(idle_s)
    with _Listener(("127.0.0.1", int(port)), _Handler) as listener, suppress(KeyboardInterrupt):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        listener.serve_forever()


if __name__ == "__main__":
    main()
