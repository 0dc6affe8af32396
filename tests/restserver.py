"""Local servers: one with responses defined by the test, and one for Elasticsearch's protocol."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class Asked(NamedTuple):
    """A request: its method, path, parameters, headers (lowercase), and content."""

    method: str
    path: str
    params: dict[str, list[str]]
    headers: dict[str, str]
    content: bytes


@contextmanager
def serving(answer):
    """Serve ``answer(asked) -> (status, headers, content)``; content other than bytes is JSON."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            params = parse_qs(parts.query, keep_blank_values=True)
            asked = Asked(self.command, parts.path, params, headers, content)
            status, told, said = answer(asked)
            raw = said if isinstance(said, bytes) else json.dumps(said).encode()
            try:
                self.send_response(status)
                for name, value in told.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
            except OSError:  # the client has gone
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - what http.server calls

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Engine:
    """In-memory indexes behind the REST protocol of Elasticsearch 8, as strict about lines.

    Scores are counts of common words. Written documents are found only after a refresh.

    Attributes:
        indexes: Name to what it was created with, documents that are found, those that wait.
        asked: The requests, in their order.
        spoil: What a test does to a request before it is answered: None to go on, or an answer.
    """

    def __init__(self) -> None:
        self.indexes: dict[str, Any] = {}
        self.asked: list[Asked] = []
        self.spoil = lambda _asked: None

    def __call__(self, asked: Asked) -> Any:  # noqa: PLR0911 - one for each call
        self.asked.append(asked)
        spoiled = self.spoil(asked)
        if spoiled is not None:
            return spoiled
        name, _, what = asked.path.strip("/").partition("/")
        if asked.method == "PUT" and not what:
            return self._create(name, asked)
        if name not in self.indexes:
            return 404, {}, fault("index_not_found_exception", f"no such index [{name}]", 404)
        index = self.indexes[name]
        if asked.method == "DELETE" and not what:
            del self.indexes[name]
            return 200, {}, {"acknowledged": True}
        if asked.method == "GET" and not what:
            return 200, {}, {name: index["created"]}
        if asked.method == "GET" and what == "_stats/store":
            size = sum(len(json.dumps(document)) for document in index["found"].values())
            return 200, {}, {"_all": {"primaries": {"store": {"size_in_bytes": size}}}}
        if asked.method == "POST" and what == "_refresh":
            index["found"] |= index["waiting"]
            index["waiting"] = {}
            return 200, {}, {"_shards": {"total": 1, "successful": 1, "failed": 0}}
        if asked.method == "POST" and what in {"_bulk", "_msearch"}:
            return self._lines(index, what, asked)
        return 405, {}, fault("illegal_argument_exception", "no such call", 405)

    def _create(self, name: str, asked: Asked) -> Any:
        if name in self.indexes:
            return 400, {}, fault("resource_already_exists_exception", f"index [{name}]", 400)
        created = json.loads(asked.content)
        if set(created) - {"settings", "mappings", "aliases"}:
            return 400, {}, fault("parse_exception", f"unknown key {sorted(created)}", 400)
        self.indexes[name] = {"created": created, "found": {}, "waiting": {}}
        return 200, {}, {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _lines(self, index: Any, what: str, asked: Asked) -> Any:
        if asked.headers["content-type"] != "application/x-ndjson":
            return 406, {}, fault("media_type_header_exception", "Invalid media-type", 406)
        if not asked.content.endswith(b"\n"):
            message = f"The {what[1:]} request must be terminated by a newline [\\n]"
            return 400, {}, fault("illegal_argument_exception", message, 400)
        lines = [json.loads(line) for line in asked.content.splitlines()]
        if len(lines) % 2:
            return 400, {}, fault("illegal_argument_exception", "lines come in pairs", 400)
        pairs = list(zip(lines[::2], lines[1::2], strict=True))
        if what == "_bulk":
            items = [self.written(index, action, source) for action, source in pairs]
            errors = any("error" in item["index"] for item in items)
            return 200, {}, {"took": 1, "errors": errors, "items": items}
        return 200, {}, {"took": 1, "responses": [self.found(index, body) for _, body in pairs]}

    def written(self, index: Any, action: Any, source: Any) -> Any:
        name = action["index"]["_id"]
        if len(name.encode()) > 512:
            message = f"id is too long, must be no longer than 512 bytes but was: {len(name)}"
            return {"index": {"_id": name, **fault("action_request_validation", message, 400)}}
        index["waiting"][name] = source
        return {"index": {"_id": name, "status": 201, "result": "created"}}

    def found(self, index: Any, body: Any) -> Any:
        """Return the hits of a `multi_match` or `match` search."""
        ((kind, query),) = body["query"].items()
        if kind == "multi_match":
            text, fields = query["query"], [field.partition("^") for field in query["fields"]]
        elif kind == "match":
            ((field, text),) = query.items()
            fields = [(field, "", "")]
        else:
            return {**fault("parsing_exception", f"unknown query [{kind}]", 400)}
        words = set(text.lower().split())
        rows = []
        for place, (name, source) in enumerate(index["found"].items()):
            # The score of the best field, as in multi_match.
            score = max(
                len(words & set(str(source[field]).lower().split())) * float(weight or 1) for field, _, weight in fields
            )
            if score:
                rows.append((-score, source["id"] if "sort" in body else -place, name))
        if body.get("sort", [{"_score": "desc"}, {"id": "asc"}]) != [{"_score": "desc"}, {"id": "asc"}]:
            return fault("parsing_exception", "only this order is known here", 400)
        hits = [{"_index": "x", "_id": name, "_score": -worse} for worse, _, name in sorted(rows)[: body["size"]]]
        if "sort" in body and not body.get("track_scores"):
            hits = [{**hit, "_score": None} for hit in hits]
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"hits": hits}, "status": 200}


def fault(kind: str, reason: str, status: int) -> Any:
    """Return an error as Elasticsearch formats it."""
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}
