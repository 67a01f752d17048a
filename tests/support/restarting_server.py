"""A process that answers chat completions on a given port, until it is killed."""

import sys
from http.server import ThreadingHTTPServer

from fake_openai import Handler


class _Lasting(Handler):
    protocol_version = "HTTP/1.1"


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Lasting) as server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        server.serve_forever()
