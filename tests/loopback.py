"""A local server with responses defined by the test."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Status, headers, and body of a response; a body other than bytes is sent as JSON, and without a
# body the connection is closed.
Reply = tuple[int, dict[str, str], Any]


def completion(text: Any, *, finish: str = "stop", usage: Any = (100, 20), **message: Any) -> Reply:
    """Return the response of a language model; `usage` has its tokens, None if not reported."""
    told = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
    content = {"role": "assistant", "content": text, **message}
    choices = [{"index": 0, "message": content, "finish_reason": finish}]
    return 200, {}, {"object": "chat.completion", "model": "m-1", "choices": choices, "usage": told}


@dataclass
class Loopback:
    """A running server and its requests."""

    url: str
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def serving(answer: Callable[[Any, int], Reply], context: ssl.SSLContext | None = None) -> Iterator[Loopback]:
    """Serve ``answer(body, number of earlier requests)`` until the block ends, by TLS if given."""
    said = Loopback("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            lines = self.headers["Content-Type"] == "application/x-ndjson"
            body = [*map(json.loads, sent.splitlines())] if lines else json.loads(sent)
            before = len(said.bodies)
            said.bodies.append(body)
            said.headers.append({name.lower(): value for name, value in self.headers.items()})
            said.paths.append(self.path)
            status, headers, content = answer(body, before)
            if content is None:
                self.close_connection = True
                return
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            try:
                self.wfile.write(raw)
            except OSError:  # the client has gone
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    said.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield said
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
