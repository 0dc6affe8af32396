"""JSON over HTTP with one timeout for the whole response, a size limit, and redacted secrets."""

from __future__ import annotations

import base64
import json
import math
import os
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from rankgauge.core.arguments import integer, number
from rankgauge.core.keyed_hash import keyed_hash
from rankgauge.core.libraries import library
from rankgauge.core.redaction import Secrets, redact, secret_parts
from rankgauge.errors import InputError, RankgaugeError

Result = TypeVar("Result")

# Maximum size of a decompressed response in bytes.
MAX_BYTES = 64 * 2**20
_MAX_FAULT = 2**16  # maximum size of an error response, which is only quoted
# Status codes for which a retry may succeed: timeouts, rate limits, temporary server errors.
RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_FIXES = {
    401: "set the key: name its environment variable in key_env",
    403: "use a key with this permission: name its environment variable in key_env",
    404: "check the URL: use the part before the requested path",
    413: "send less per request: a smaller batch, or shorter texts",
    429: "wait, or request less at once",
}
_SHOWN = 300
_FIRST_WAIT = 0.5
# URL parameters that may be printed; others may be secret.
_PLAIN = frozenset({"api-version", "version"})
_PLAIN_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "content-type", "user-agent"})
_AGENT = {"accept": "*/*", "accept-encoding": "gzip", "user-agent": "rankgauge"}


class EndpointError(RankgaugeError):
    """Missing or invalid response of a server.

    Attributes:
        status: HTTP status; None without a readable response.
        retryable: Whether the same request may succeed later.
        retry_after: Seconds to wait before a retry, as requested by the server, or None.
        body: Body of an error response, without secrets.
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
        body: str = "",
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.body = body
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class Endpoint:
    """A server that receives and returns JSON. Thread-safe.

    Args:
        url: Base URL, such as ``http://localhost:8000/v1``. A query (``?api-version=...``) is kept.
        headers: Headers of every request.
        key_env: Environment variable with the API key. It is read for each request and neither
            printed nor stored.
        key_header: Header of the key; ``Authorization`` puts `key_scheme` before the key.
        key_scheme: ``Bearer``, ``ApiKey``, or ``Basic`` for a key that is ``user:password``.
        timeout: Maximum seconds for the whole request, including name resolution.
        max_bytes: Maximum size of a decompressed response; 64 MiB if omitted.

    Raises:
        MissingExtra: If httpx is not installed.
        InputError: If the URL is invalid, a header is not text, or the variable is not set.

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
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._httpx = library("httpx", extra="http", of="an endpoint")
        self._parts = _parts(url)
        self._query = parse_qsl(self._parts.query, keep_blank_values=True)
        # User and password of the URL, which are percent-encoded.
        user, _, password = self._parts.netloc.rpartition("@")[0].partition(":")
        self._login = unquote(user), unquote(password)
        self._hidden_parts = secret_parts(self._parts.path)
        self._headers = _headers(headers)
        self._key_env = key_env
        self._key_header = key_header
        self._key_scheme = key_scheme
        self._timeout = number("timeout", timeout, above=True)
        self._max_bytes = integer("max_bytes", max_bytes)
        self.secrets = Secrets()
        self._register()
        if (
            self._sent_headers()
            and self._parts.username
            and key_env is not None
            and (key_header.lower() == "authorization")
        ):
            raise InputError(
                f"{self.shown} has both a user and a key for one header",
                where="key_env",
                fix="remove the user from the URL, or name another key_header",
            )
        # One transport per active call: a shared pool scans all of its connections on each call,
        # which takes longer than the calls themselves when there are 64 at once.
        try:
            self._make_transport = self._transport_maker()
            self._idle = [self._make_transport()]
        except (ImportError, OSError, ValueError, self._httpx.InvalidURL) as error:
            # The rest of the message may contain a part of a password.
            raise InputError(
                f"the proxy or certificate file set in the environment cannot be used: {str(error).partition(': ')[0]}",
                where=self.shown,
                fix=f"check {self._parts.scheme}_proxy, all_proxy, SSL_CERT_FILE, and SSL_CERT_DIR",
            ) from None

    def __repr__(self) -> str:
        return f"<Endpoint {self.shown}>"

    @property
    def shown(self) -> str:
        """The URL without secrets, for settings and messages."""
        host = self._parts.netloc.rpartition("@")[2]
        query = "&".join(f"{k}={v if k.lower() in _PLAIN else '...'}" for k, v in self._query)
        path = "/".join("..." if part in self._hidden_parts else part for part in self._parts.path.split("/"))
        return urlunsplit((self._parts.scheme, host, path, query, ""))

    def settings(self, **more: Any) -> dict[str, Any]:
        """Return the settings that determine the responses of the server: URL and headers.

        Possible secrets are stored as one keyed hash (``hidden``): the user in the URL, path
        segments that look like keys, URL parameters, and header values. The key is represented only
        by the name of its variable, so that a run can continue after the key expired. Use two
        variables for two accounts with different responses.

        Args:
            more: Other values that are sent but not shown.
        """
        settings: dict[str, Any] = {"url": self.shown}
        if self._headers:
            settings["headers"] = sorted(self._headers)
        if self._key_env is not None:
            settings["key_env"] = self._key_env
        hidden: dict[str, Any] = {
            "user": self._parts.netloc.rpartition("@")[0],
            "path": sorted(self._hidden_parts),
            "query": [row for row in self._query if row[0].lower() not in _PLAIN],
            "headers": self._headers,
            **more,
        }
        hidden = {name: value for name, value in hidden.items() if value}
        return settings | ({"hidden": keyed_hash(hidden)} if hidden else {})

    def quoted(self, message: object) -> str:
        """Return a server message on one line without secrets, which some servers echo."""
        line = " ".join(redact(self.secrets.redact(str(message)[:_MAX_FAULT])).split())
        return line[:_SHOWN] + "…" if len(line) > _SHOWN else line or "(nothing)"

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    def post(self, path: str, body: Any) -> Any:
        """Send a JSON body and return the parsed response.

        Args:
            path: Path after the base URL, such as ``embeddings``; may be empty.
            body: Value to send as JSON.

        Raises:
            EndpointError: If the response is late, has a status other than 2xx, or is not JSON.
        """
        return self.ask("POST", path, json.dumps(body).encode())

    def ask(
        self,
        method: str,
        path: str = "",
        content: bytes | None = None,
        *,
        kind: str = "application/json",
        params: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a request and return the parsed response.

        Args:
            method: ``GET``, ``POST``, ``PUT``, or ``DELETE``.
            path: Path after the base URL; may be empty.
            content: Body, if any.
            kind: Content type.
            params: Query parameters; a list repeats the name.

        Raises:
            EndpointError: If the response is late, has a status other than 2xx, or is not JSON.
        """
        where = f"{method} {self.shown}" + (f" /{path.strip('/')}" if path.strip("/") else "")
        headers = self._sent_headers({} if content is None else {"content-type": kind})
        # Suppress causes: their texts may contain the request.
        try:
            request = self._httpx.Request(
                method,
                self._url(path, params or {}),
                headers=headers,
                content=content,
                extensions={"timeout": dict.fromkeys(("connect", "read", "write", "pool"), self._timeout)},
            )
            status, got, content = self._sent(request)
        except self._httpx.TimeoutException:
            raise EndpointError(
                f"no complete response within {self._timeout:g} seconds",
                where=where,
                retryable=True,
                fix="request less at once, or raise timeout",
            ) from None
        except (self._httpx.TransportError, self._httpx.InvalidURL, UnicodeError) as error:
            raise EndpointError(
                f"the server cannot be reached: {type(error).__name__}: {self.quoted(error)}",
                where=where,
                retryable=True,
                fix="check that it is running, and check the URL",
            ) from None
        except zlib.error:
            raise EndpointError(
                "the response is not valid gzip", where=where, fix="check the server, or a proxy in front of it"
            ) from None
        text = content.decode("utf-8", "replace")
        if not 200 <= status < 300:
            raise EndpointError(
                f"the server answered {status}: {self.quoted(text)}",
                where=where,
                status=status,
                retryable=status in RETRYABLE,
                retry_after=_retry_after(got),
                body=redact(self.secrets.redact(text)),
                fix=_FIXES.get(status, "see the message of the server"),
            )
        if len(content) > self._max_bytes:
            raise EndpointError(
                f"the response has more than {self._max_bytes:,} bytes",
                where=where,
                status=status,
                fix="request less at once (fewer documents, a smaller batch), or raise max_bytes",
            )
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise EndpointError(
                f"the response is not valid JSON: {self.quoted(text)}",
                where=where,
                status=status,
                fix="check the URL: another service may answer there",
            ) from None

    def _sent(self, request: Any) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers, and content within the time limit.

        httpx limits the time of each read and write, but neither their total nor name resolution.
        A thread that exceeds the limit ends with its connection and does not delay the exit of
        the process.
        """
        sent: Future[tuple[int, Mapping[str, str], bytes]] = Future()
        threading.Thread(target=self._exchange, args=(request, sent), daemon=True).start()
        try:
            return sent.result(self._timeout)
        except TimeoutError:
            raise self._httpx.ReadTimeout("the time limit was reached") from None

    def _exchange(self, request: Any, sent: Future[tuple[int, Mapping[str, str], bytes]]) -> None:
        """Send a request over the connection used last, or a new one if all are in use."""
        latest = time.monotonic() + self._timeout
        try:
            transport = self._idle.pop()
        except IndexError:
            transport = self._make_transport()
        try:
            with closing(transport.handle_request(request)) as response:
                result = response.status_code, response.headers, self._read(response, latest)
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits for the result
            sent.set_exception(error)
        else:
            self._idle.append(transport)
            sent.set_result(result)

    def _read(self, response: Any, latest: float) -> bytes:
        """Return the decompressed content: at most one byte more than the limit."""
        most = self._max_bytes if 200 <= response.status_code < 300 else _MAX_FAULT
        encoding = response.headers.get("content-encoding", "").strip().lower()
        packed = None
        if encoding in {"gzip", "x-gzip", "deflate"}:
            packed = zlib.decompressobj(wbits=47)  # gzip or zlib, by its first bytes
        elif encoding not in {"", "identity"}:
            raise zlib.error(encoding)
        body = bytearray()
        for chunk in response.iter_raw():
            room = most + 1 - len(body)
            body += chunk[:room] if packed is None else packed.decompress(chunk, room)
            if len(body) > most:
                break
            if time.monotonic() > latest:
                raise self._httpx.ReadTimeout("the time limit was reached")
        return bytes(body)

    def _sent_headers(self, first: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the headers of a request with the current key from the environment."""
        headers = {**_AGENT, **(first or {}), **self._headers}
        if self._parts.username or self._parts.password:
            headers["authorization"] = f"Basic {_base64(':'.join(self._login))}"
        key = self._key()
        name = self._key_header.lower()
        if key and name == "authorization":
            headers[name] = f"{self._key_scheme} {_base64(key) if self._key_scheme == 'Basic' else key}"
        elif key:
            headers[name] = key
        return headers

    def _transport_maker(self) -> Callable[[], Any]:
        """Return a factory for transports of one connection, through the configured proxy if any.

        Transports are below httpx's clients, which would store cookies and log URLs with secrets.
        """
        # Loading certificates is slow.
        secure = (
            self._httpx.create_ssl_context()
            if self._parts.scheme == "https"
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        options = {"verify": secure, "limits": self._httpx.Limits(max_connections=1)}
        proxies = {} if proxy_bypass(self._parts.hostname) else getproxies()
        url = proxies.get(self._parts.scheme) or proxies.get("all")
        if url:
            options["proxy"] = proxy = self._httpx.Proxy(url if "://" in url else f"http://{url}")
            if proxy.raw_auth:
                self.secrets.add_login(*(part.decode("utf-8", "replace") for part in proxy.raw_auth))
        return partial(self._httpx.HTTPTransport, **options)

    def _register(self) -> None:
        """Register the secrets of URL and headers; the key is registered when it is read."""
        user, password = self._login
        if password:
            self.secrets.add_login(user, password)
        self.secrets.add("" if password else user)
        for part in self._hidden_parts:
            self.secrets.add(unquote(part))
        for name, value in self._query:
            if name.lower() not in _PLAIN:
                self.secrets.add(value, name)
        for name, value in self._headers.items():
            if name not in _PLAIN_HEADERS:
                self.secrets.add(value, name)
                scheme, _, credentials = value.strip().partition(" ")
                self.secrets.add(credentials, name)
                with suppress(ValueError):
                    login = base64.b64decode(credentials.strip() * (scheme.lower() == "basic"), validate=True)
                    self.secrets.add_login(*login.decode("utf-8", "replace").partition(":")[::2])

    def _url(self, path: str, params: Mapping[str, Any]) -> str:
        whole = "/".join(part for part in (self._parts.path, path.strip("/")) if part)
        query = urlencode([*self._query, *params.items()], doseq=True)
        host = self._parts.netloc.rpartition("@")[2]
        return urlunsplit((self._parts.scheme, host, whole, query, ""))

    def _key(self) -> str:
        if self._key_env is None:
            return ""
        key = os.environ.get(self._key_env, "").strip()
        self.secrets.add(key, self._key_header, self._key_env)
        if self._key_scheme == "Basic":
            self.secrets.add(key.partition(":")[2], self._key_header, self._key_env)
        if not key:
            raise InputError(
                f"the environment variable {self._key_env} is not set",
                where=self.shown,
                fix=f"export {self._key_env}=..., or omit key_env if no key is needed",
            )
        if self._key_scheme != "Basic" and not (key.isascii() and key.isprintable()):
            raise InputError(
                f"the environment variable {self._key_env} holds a line break or a character that "
                "is not ASCII, which no header can carry",
                where=self.shown,
                fix=f"export {self._key_env}=... with the key on one line",
            )
        return key


def call_with_retries(
    call: Callable[[], Result], *, attempts: int = 5, longest: float = 60.0, wait: Callable[[float], None] | None = None
) -> Result:
    """Return the result of a call, retrying while the server is temporarily unavailable.

    Waits as long as the server requests, otherwise 0.5, 1, 2, ... seconds, at most `longest`.
    """
    for attempt in range(1, attempts):
        try:
            return call()
        except EndpointError as error:
            if not error.retryable:
                raise
            delay = error.retry_after
            seconds = min(_FIRST_WAIT * 2 ** (attempt - 1) if delay is None else delay, longest)
            (wait or time.sleep)(seconds)
    return call()


def _parts(url: Any) -> Any:
    with suppress(ValueError, AttributeError):
        parts = urlsplit(url.strip())
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return parts._replace(path=parts.path.rstrip("/"), fragment="")
    raise InputError(
        f"got {type(url).__name__ if not isinstance(url, str) else 'text that is not a URL'} for a URL",
        where="url",
        fix="pass a complete URL: http://localhost:8000/v1",
    )


def _headers(headers: Any) -> dict[str, str]:
    if headers is None:
        return {}
    fits = isinstance(headers, Mapping) and all(
        isinstance(part, str) and part.isascii() and part.isprintable() for row in headers.items() for part in row
    )
    if not fits:
        raise InputError(
            "headers are names and values in ASCII text", where="headers", fix='pass them as {"x-team": "search"}'
        )
    return {name.lower(): value for name, value in headers.items()}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, given as a number or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        try:
            seconds = float(text) / unit
        except ValueError:
            continue
        return seconds if 0 <= seconds < math.inf else None
    try:
        then = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max((then - datetime.now(UTC)).total_seconds(), 0.0)
