"""A server that is asked in JSON over HTTP: time limits, keys kept secret, errors that say more."""

from __future__ import annotations

import base64
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from rankgauge.errors import InputError, RankgaugeError
from rankgauge.retrievers.libraries import library

__all__ = ["Endpoint", "EndpointError", "patiently"]

Answer = TypeVar("Answer")

_TOO_MANY = 429
# Another attempt may succeed: the server was too slow, too early, too busy, or broken for now.
_PASSING = frozenset({408, 425, _TOO_MANY, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_FIXES = {
    401: "give the key: name its environment variable in key_env",
    403: "give a key that may do this: name its environment variable in key_env",
    404: "look at the URL; it is what stands before the path that is asked for",
    413: "send less at once: a smaller batch, or shorter texts",
    429: "wait, or ask for less at once",
}
_SHOWN = 300
_FIRST_WAIT = 0.5
# Parameters of a URL that are told; the rest may be secret.
_PLAIN = frozenset({"api-version", "version"})


class EndpointError(RankgaugeError):
    """A server did not answer as it should.

    Attributes:
        status: The status of its answer; None if there was none, or none that could be read.
        retryable: Whether the same request may succeed later.
        retry_after: Seconds after which the server wants to be asked again; None if it said none.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        fix: str = "",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class Endpoint:
    """A server that takes JSON and returns JSON. It can be asked from several threads at once.

    Args:
        url: Where it is: ``http://localhost:8000/v1``. A query (``?api-version=...``) is kept.
        headers: Sent with every request.
        key_env: The environment variable that holds the key. The key is read for each request,
            sent, and neither shown nor kept.
        key_header: The header it is sent in; in ``Authorization`` behind `key_scheme`, else bare.
        key_scheme: ``Bearer``, ``ApiKey``, or ``Basic`` for a key that is ``user:password``.
        timeout: Seconds that an answer may take in all.

    Raises:
        MissingExtra: If httpx is not installed.
        InputError: If the URL is none, a header is no text, or the variable is not set.

    Example:
        >>> Endpoint("http://localhost:8000/v1/?token=abc")
        <Endpoint http://localhost:8000/v1?token=...>
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        key_env: str | None = None,
        key_header: str = "Authorization",
        key_scheme: str = "Bearer",
        timeout: float = 60.0,
    ) -> None:
        self._httpx = library("httpx", extra="http", of="an endpoint")
        self._parts = _parts(url)
        self._headers = _headers(headers)
        self._key_env = key_env
        self._key_header = key_header
        self._key_scheme = key_scheme
        self._timeout = _seconds(timeout)
        if self._key() and self._parts.username and key_header.lower() == "authorization":
            raise InputError(
                f"{self.shown} is given a user and a key, both for one header", where="key_env",
                fix="take the user out of the URL, or name another key_header",
            )  # fmt: skip
        self._client = self._httpx.Client(timeout=self._timeout, follow_redirects=False)

    def __repr__(self) -> str:
        return f"<Endpoint {self.shown}>"

    @property
    def shown(self) -> str:
        """The URL without what may be secret, for settings and messages."""
        host = self._parts.netloc.rpartition("@")[2]
        rows = parse_qsl(self._parts.query, keep_blank_values=True)
        query = "&".join(f"{k}={v if k.lower() in _PLAIN else '...'}" for k, v in rows)
        return urlunsplit((self._parts.scheme, host, self._parts.path, query, ""))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def post(self, path: str, body: Any) -> Any:
        """Send a body and return the answer.

        Args:
            path: What stands behind the URL, such as ``embeddings``; nothing if it is empty.
            body: What is sent as JSON.

        Raises:
            EndpointError: If there is no answer in time, none with status 2xx, or none in JSON.
        """
        return self.ask("POST", path, json.dumps(body).encode())

    def ask(
        self,
        method: str,
        path: str = "",
        content: bytes | None = None,
        *,
        kind: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request of any method and return the answer.

        Args:
            method: ``GET``, ``POST``, ``PUT`` or ``DELETE``.
            path: What stands behind the URL; nothing if it is empty.
            content: What is sent, if anything.
            kind: What the content is.
            params: Sent behind the path, ``?name=value``.

        Raises:
            EndpointError: If there is no answer in time, none with status 2xx, or none in JSON.
        """
        where = f"{method} {self.shown}" + (f" /{path.strip('/')}" if path.strip("/") else "")
        request = self._client.build_request(
            method, self._url(path, params or {}), content=content, headers=self._sent_headers(
                {} if content is None else {"Content-Type": kind}
            ),
        )  # fmt: skip
        try:
            status, headers, content = self._sent(request)
        except self._httpx.TimeoutException as error:
            raise EndpointError(
                f"no whole answer within {self._timeout:g} seconds", where=where, retryable=True,
                fix="ask for less at once, or give a longer timeout",
            ) from error  # fmt: skip
        except self._httpx.RequestError as error:
            raise EndpointError(
                f"the server cannot be reached: {type(error).__name__}: {self._clean(str(error))}",
                where=where, retryable=True, fix="see that it runs, and look at the URL",
            ) from error  # fmt: skip
        text = content.decode("utf-8", "replace")
        if not 200 <= status < 300:
            raise EndpointError(
                f"the server answered {status}: {self._clean(text)}", where=where, status=status,
                retryable=status in _PASSING, retry_after=_retry_after(headers),
                fix=_FIXES.get(status, "see what the server says"),
            )  # fmt: skip
        try:
            return json.loads(text)
        except ValueError:
            raise EndpointError(
                f"the answer is no JSON: {self._clean(text)}", where=where, status=status,
                fix="look at the URL; something else answers there",
            ) from None  # fmt: skip

    def _sent_headers(self, headers: dict[str, str]) -> dict[str, str]:
        headers |= self._headers
        key = self._key()
        if key and self._key_header.lower() == "authorization":
            plain = self._key_scheme != "Basic"
            told = key if plain else base64.b64encode(key.encode()).decode()
            headers[self._key_header] = f"{self._key_scheme} {told}"
        elif key:
            headers[self._key_header] = key
        return headers

    def _sent(self, request: Any) -> tuple[int, Any, bytes]:
        """Status, headers and content; all of it within the time limit."""
        latest = time.monotonic() + self._timeout
        chunks: list[bytes] = []
        answer = self._client.send(request, stream=True)
        try:
            for chunk in answer.iter_bytes():
                chunks.append(chunk)
                # The limit of the library is for each part; a server that drips keeps within it.
                if time.monotonic() > latest:
                    raise self._httpx.ReadTimeout("the answer goes on and on")
        finally:
            answer.close()
        return answer.status_code, answer.headers, b"".join(chunks)

    def _url(self, path: str, params: Mapping[str, str]) -> str:
        whole = "/".join(part for part in (self._parts.path, path.strip("/")) if part)
        query = urlencode([
            *parse_qsl(self._parts.query, keep_blank_values=True), *params.items()
        ])  # fmt: skip
        return urlunsplit((self._parts.scheme, self._parts.netloc, whole, query, ""))

    def _key(self) -> str:
        if self._key_env is None:
            return ""
        key = os.environ.get(self._key_env, "").strip()
        if not key:
            raise InputError(
                f"the environment variable {self._key_env} is not set", where=self.shown,
                fix=f"export {self._key_env}=..., or leave key_env out where no key is wanted",
            )  # fmt: skip
        return key

    def _clean(self, text: str) -> str:
        """What a server said, on one line and without our secrets: some send them back."""
        secrets = [os.environ.get(self._key_env, "").strip()] if self._key_env else []
        secrets += [value for value in self._headers.values() if len(value) > 7]
        for secret in filter(None, secrets):
            text = text.replace(secret, "***")
        line = " ".join(text.split())
        return line[:_SHOWN] + "…" if len(line) > _SHOWN else line or "(nothing)"


def patiently(call: Callable[[], Answer], *, attempts: int = 5, longest: float = 60.0) -> Answer:
    """What a call returns, asked again where a server is busy: for work nobody else repeats.

    Waits as long as the server said, else 0.5, 1, 2, ... seconds.

    Args:
        call: What is done.
        attempts: How often it is tried.
        longest: Seconds to wait at most, each time.

    Raises:
        EndpointError: The last one, or the first that says that waiting does not help.
    """
    for attempt in range(1, attempts):
        try:
            return call()
        except EndpointError as error:
            if not error.retryable:
                raise
            told = error.retry_after
            time.sleep(min(_FIRST_WAIT * 2 ** (attempt - 1) if told is None else told, longest))
    return call()


def _parts(url: Any) -> Any:
    try:
        parts = urlsplit(url.strip()) if isinstance(url, str) else None
        fits = parts is not None and parts.scheme in {"http", "https"} and bool(parts.hostname)
        fits = fits and (parts is None or parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits or parts is None:
        raise InputError(
            f"got {type(url).__name__ if not isinstance(url, str) else 'text that is none'} "
            "for a URL", where="url", fix="give it whole: http://localhost:8000/v1",
        )  # fmt: skip
    return parts._replace(path=parts.path.rstrip("/"), fragment="")


def _headers(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    fits = isinstance(given, Mapping) and all(
        isinstance(part, str) and part.isascii() and part.isprintable()
        for row in given.items()
        for part in row
    )
    if not fits:
        raise InputError(
            "headers are names and values in ASCII text", where="headers",
            fix='give them as {"x-team": "search"}',
        )  # fmt: skip
    return dict(given)


def _seconds(given: Any) -> float:
    wanted = isinstance(given, int | float) and not isinstance(given, bool)
    if not wanted or not 0 < given < math.inf:
        raise InputError(
            f"timeout={given!r:.60} is not possible", where="timeout",
            fix="give a number of seconds above 0",
        )  # fmt: skip
    return float(given)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a number or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()
        try:
            seconds = float(said) / unit
        except ValueError:
            continue
        return seconds if 0 <= seconds < math.inf else None
    try:
        then = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max((then - datetime.now(UTC)).total_seconds(), 0.0)
