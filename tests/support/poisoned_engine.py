"""An engine that keeps state between requests: one prompt poisons all that share its prefix."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

import fake_openai


@contextmanager
def running(*, trigger: str, prefix: str) -> Iterator[str]:
    """Serve on a free port; after the trigger, prompts of the prefix get another answer.

    The paths below `/sound` keep nothing.
    """

    class Handler(fake_openai.Handler):
        poisoned = False

        def stream(self) -> None:
            """Answer a prompt of the poisoned prefix otherwise."""
            text = self.body["messages"][-1]["content"]
            state = type(self)
            said = fake_openai.ANSWER
            if state.poisoned and text.startswith(prefix) and "/sound/" not in self.path:
                said = ("Rome", " it", " is")
            state.poisoned |= text == trigger
            self.say(said)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
