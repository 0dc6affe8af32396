"""Client of a language model at an OpenAI-compatible ``POST {url}/chat/completions``."""

from __future__ import annotations

import copy
import json
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from rankgauge.core.arguments import integer, number
from rankgauge.core.grouping import group_values
from rankgauge.core.http_client import Endpoint, EndpointError, call_with_retries
from rankgauge.core.libraries import library
from rankgauge.core.progress import report
from rankgauge.errors import InputError
from rankgauge.llm.cache import ReplyCache, cache_key
from rankgauge.llm.limits import Meter, Pace, Stop
from rankgauge.llm.replies import (
    LEVELS,
    PATH,
    RESERVED,
    ChatRequest,
    InvalidReply,
    ModelError,
    Reply,
    Usage,
    estimated_usage,
    raise_error,
    read_reply,
    read_text,
    refused_parameter,
    repair_request,
    reported_usage,
    request_body,
)

_MAX_BYTES = 8 * 2**20
_LONGEST_WAIT = 300.0
_POLL = 0.1  # seconds: on Windows, a longer wait ignores Ctrl-C

Wait = Callable[[float], None]


class ChatModel:
    """Language model at an OpenAI-compatible endpoint.

    Instances are thread-safe, and their settings are immutable.

    Args:
        url: The URL without ``/chat/completions``: ``http://localhost:8000/v1``.
        model: The name of the model.
        key_env: The environment variable with the key.
        key_header: The header that carries the key.
        headers: Headers of every request.
        temperature: The temperature; None to omit it. Replies report whether the server rejected
            it.
        seed: The seed, to which the sample number is added; None to omit it.
        max_tokens: The maximum tokens of a response, including reasoning; sent as
            ``max_completion_tokens`` if the server requires this name.
        parameters: Further parameters, such as ``{"reasoning_effort": "low"}``.
        timeout: Maximum seconds per response.
        retries: Number of retries if the server is busy or cannot be reached.
        repairs: Number of requests to correct a reply that violates the schema.
        concurrency: Maximum number of concurrent calls.
        requests_per_minute: Maximum number of calls in any 60 seconds.
        tokens_per_minute: Maximum number of tokens in any 60 seconds, estimated before each call.
        input_price: Price of a million input tokens, in any currency.
        output_price: Price of a million output tokens.
        max_cost: The budget. Each call reserves its expected cost before it is sent. The cost is
            estimated from the length of its messages and `max_tokens` or the longest response so
            far; the first call is made alone. Calls without a response are not counted.
        cache: A file that stores replies, created if missing, readable only by its owner.

    Raises:
        MissingExtra: If httpx is not installed.
        InputError: If the environment variable is not set, or a value is invalid.

    Example:
        >>> ChatModel("http://localhost:8000/v1", "small", max_tokens=500)
        <ChatModel small at http://localhost:8000/v1>
    """

    def __init__(  # noqa: PLR0913 - each is a separate option
        self,
        url: str,
        model: str,
        *,
        key_env: str | None = None,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
        temperature: float | None = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        timeout: float = 120.0,
        retries: int = 3,
        repairs: int = 1,
        concurrency: int = 4,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        input_price: float | None = None,
        output_price: float | None = None,
        max_cost: float | None = None,
        cache: str | Path | None = None,
    ) -> None:
        library("httpx", extra="llm", of="a language model")
        for name, value in (
            ("max_tokens", max_tokens),
            ("requests_per_minute", requests_per_minute),
            ("tokens_per_minute", tokens_per_minute),
        ):
            if value is not None:
                integer(name, value)
        self._model = model
        self._sampling: dict[str, Any] = {
            "temperature": None if temperature is None else number("temperature", temperature),
            "seed": None if seed is None else integer("seed", seed, least=None),
            "max_tokens": max_tokens,
        }
        self._parameters = _plain_parameters(parameters)
        self._retries = integer("retries", retries, least=0)
        self._repairs = integer("repairs", repairs, least=0)
        self._concurrency = integer("concurrency", concurrency, most=100)
        self._endpoint = Endpoint(
            url, headers=headers, key_env=key_env, key_header=key_header, timeout=timeout, max_bytes=_MAX_BYTES
        )
        self._slots = threading.Semaphore(self._concurrency)
        self._pace = Pace(requests_per_minute, tokens_per_minute)
        self._meter = Meter(_prices(input_price, output_price, max_cost), max_cost)
        self._cache = None if cache is None else ReplyCache(Path(cache))
        self._lock = threading.Lock()
        self._refused: frozenset[str] = frozenset()
        # To estimate the cost of the next call: the longest response so far, and the largest
        # ratio of reported to estimated input tokens.
        self._longest_output = 0
        self._excess = 1.0
        # Everything that determines a reply; validity does not depend on `repairs`.
        self._identity = {
            "type": "chat",
            **self._endpoint.settings(),
            "model": model,
            **self._sampling,
            "parameters": self._parameters,
        }
        self.settings: Mapping[str, Any] = self._identity | {"repairs": self._repairs}

    def __repr__(self) -> str:
        return f"<ChatModel {self._model} at {self._endpoint.shown}>"

    def usage(self) -> Usage:
        """Return the usage of all calls so far."""
        return self._meter.usage()

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def complete(
        self,
        messages: str | Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        sample: int = 0,
        refresh: bool = False,
    ) -> Reply:
        """Return the reply to one request.

        Args:
            messages: A text, or messages with ``role`` and ``content``.
            schema: The JSON schema of the reply; see ``ChatRequest``.
            sample: The sample number; equal messages with a new number are sent again.
            refresh: Whether to send the request even if the reply is cached, and replace it.

        Raises:
            ModelError: If there is no valid reply.
            InputError: If the messages are invalid, or the cache cannot be used.
        """
        ((_, result),) = self.complete_each([ChatRequest(messages, schema, sample)], refresh=refresh)
        if isinstance(result, ModelError):
            raise result
        return result

    def complete_all(
        self,
        requests: Iterable[ChatRequest | str | Sequence[Mapping[str, str]]],
        *,
        refresh: bool = False,
    ) -> list[Reply | ModelError]:
        """Return a reply, or the reason why it is missing, for each request, in order.

        Equal requests are sent once. The remaining requests are not sent if the server rejects the
        key, does not have the model, or fails for ten consecutive requests, or if `max_cost` is
        reached. After Ctrl-C, no more requests are sent; pending calls end in the background, and
        their replies are cached.

        Args:
            requests: Requests, or messages for requests without a schema.
            refresh: Whether to send requests even if their replies are cached, and replace these.

        Raises:
            InputError: As by :meth:`complete_each`; nothing is sent.
        """
        requests = list(requests)
        results: dict[int, Reply | ModelError] = {}
        for place, result in self.complete_each(requests, refresh=refresh):
            results[place] = result
            report(len(results), len(requests), "answered")
        return [results[place] for place in range(len(results))]

    def complete_each(
        self,
        requests: Iterable[ChatRequest | str | Sequence[Mapping[str, str]]],
        *,
        refresh: bool = False,
    ) -> Generator[tuple[int, Reply | ModelError], None, None]:
        """Yield the number of each request (from 0) and its result, as results arrive.

        Args:
            requests: Requests, or messages for requests without a schema.
            refresh: Whether to send requests even if their replies are cached, and replace these.

        Raises:
            InputError: If a request is invalid, or the cache cannot be used; nothing is sent.
        """
        listed = [request if isinstance(request, ChatRequest) else ChatRequest(request) for request in requests]
        keys = [self._key(request) for request in listed]
        unique = dict(zip(keys, listed, strict=True))
        places = group_values((key, place) for place, key in enumerate(keys))

        def delivered(key: str, result: Reply | ModelError) -> Iterator[tuple[int, Reply | ModelError]]:
            for place in places[key]:
                outcome = result if place == places[key][0] else self._repeated(result)
                failed = isinstance(outcome, ModelError)
                self._meter.add(Usage(failed=failed, cached=not failed and outcome.usage.cached))
                yield place, outcome

        kept = {} if refresh else self._cached(unique)
        for key, reply in kept.items():
            yield from delivered(key, reply)
        rest = {key: unique[key] for key in unique if key not in kept}
        for key, result in self._ask_each(rest, refresh=refresh):
            yield from delivered(key, result)

    def estimate(self, requests: Iterable[ChatRequest], output_tokens: Iterable[int]) -> Usage:
        """Estimate the calls, tokens, and cost of requests without sending them.

        Cached requests cost nothing. Retries and repairs are not included.

        Args:
            requests: The requests.
            output_tokens: Expected tokens per reply, capped at `max_tokens`.
        """
        expected = {
            self._key(request): (request, tokens) for request, tokens in zip(requests, output_tokens, strict=True)
        }
        kept = self._cached({key: request for key, (request, _) in expected.items()})
        most = self._sampling["max_tokens"]
        total = Usage(cached=len(kept))
        for key, (request, tokens) in expected.items():
            if key not in kept:
                body = request_body(request.messages, request, self._sampling, self._refused)
                total += estimated_usage(body["messages"], min(tokens, most or tokens))
        return self._meter.priced(total)

    # ---- several requests

    def _ask_each(
        self, requests: Mapping[str, ChatRequest], *, refresh: bool
    ) -> Iterator[tuple[str, Reply | ModelError]]:
        """Send the requests in threads and yield each result as it arrives."""
        stop = Stop()
        ended: SimpleQueue[Future[Reply | ModelError]] = SimpleQueue()
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="rankgauge-llm")
        try:
            key_of = {
                pool.submit(self._work, key, request, stop, refresh=refresh): key for key, request in requests.items()
            }
            for future in key_of:
                future.add_done_callback(ended.put)
            for _ in requests:
                finished: Future[Reply | ModelError] | None = None
                while finished is None:
                    with suppress(Empty):
                        finished = ended.get(timeout=_POLL)
                yield key_of[finished], finished.result()
        finally:
            # Only effective if an error or Ctrl-C ended the loop.
            stop.now()
            pool.shutdown(wait=False, cancel_futures=True)

    def _work(self, key: str, request: ChatRequest, stop: Stop, *, refresh: bool) -> Reply | ModelError:
        try:
            stop.wait(0)
            reply = self._obtain(key, request, stop, refresh=refresh)
        except ModelError as error:
            stop.observe(error)
            # Stack frames would keep all messages in memory.
            error.__traceback__ = error.__context__ = None
            return error
        stop.observe(None)
        return reply

    def _repeated(self, result: Reply | ModelError) -> Reply | ModelError:
        """Return the result for a repeated request."""
        if isinstance(result, Reply):
            return replace(result, cached=True, usage=self._meter.priced(Usage(cached=1)))
        result = copy.copy(result)
        result.usage = self._meter.priced(Usage(failed=1))
        return result

    # ---- the cache

    def _key(self, request: ChatRequest) -> str:
        return cache_key(
            self._identity | {"messages": request.messages, "schema": request.schema, "sample": request.sample}
        )

    def _cached(self, requests: Mapping[str, ChatRequest]) -> dict[str, Reply]:
        """Return the valid cached replies."""
        replies: dict[str, Reply] = {}
        if self._cache is None:
            return replies
        usage = self._meter.priced(Usage(cached=1))
        for key, row in self._cache.find(requests).items():
            schema = requests[key].schema
            try:
                data = None if schema is None else read_reply(row["text"], schema)
            except InvalidReply:
                continue
            replies[key] = Reply(
                row["text"],
                data,
                row["model"],
                usage,
                cached=True,
                repairs=row["repairs"],
                not_applied=tuple(row["not_applied"]),
            )
        return replies

    def _obtain(self, key: str, request: ChatRequest, stop: Stop, *, refresh: bool) -> Reply:
        """Return the reply from the cache, or send the request unless another process has sent it.

        If the cache cannot be used, no further request is sent, and the reply is not lost.
        """
        cache, names = self._cache, ("text", "model", "repairs", "not_applied")

        def ask(_: Sequence[str] = ()) -> Mapping[str, Reply]:
            reply = self._ask(request, stop.wait)
            try:
                if cache is not None:
                    cache.put({key: {name: getattr(reply, name) for name in names}})
            except InputError as error:
                stop.now(error)
            return {key: reply}

        if cache is None or refresh:
            return ask()[key]
        try:
            return cache.obtain([key], lambda _: self._cached({key: request}), ask, stop.wait)[key]
        except InputError as error:
            stop.now(error)
            stop.wait(0)
            raise

    # ---- one request

    def _ask(self, request: ChatRequest, wait: Wait) -> Reply:
        """Return a valid reply, after repairs if necessary."""
        used: list[Usage] = []
        try:
            reply = self._valid(request, wait, used)
        except ModelError as error:
            error.usage = self._meter.priced(sum(used, Usage(failed=1)))
            raise
        return replace(reply, usage=self._meter.priced(sum(used, Usage())))

    def _valid(self, request: ChatRequest, wait: Wait, used: list[Usage]) -> Reply:
        messages: Sequence[Mapping[str, str]] = request.messages
        for repairs in range(self._repairs + 1):
            reply = self._answer(messages, request, wait, used)
            if request.schema is None:
                return reply
            try:
                data = read_reply(reply.text, request.schema)
            except InvalidReply as error:
                fault = str(error)
                messages = (
                    *request.messages,
                    {"role": "assistant", "content": reply.text},
                    {"role": "user", "content": repair_request(request.schema, fault)},
                )
            else:
                return replace(reply, data=data, repairs=repairs)
        raise ModelError(
            f"the reply is not valid after {self._repairs} repairs: {fault}",
            code="invalid",
            where=f"{self._model} at {self._endpoint.shown}",
            text=reply.text,
            fix="simplify the schema, raise repairs, or use a model that supports schemas",
        )

    def _answer(
        self, messages: Sequence[Mapping[str, str]], request: ChatRequest, wait: Wait, used: list[Usage]
    ) -> Reply:
        """Return a response, omitting parameters that the server rejects."""
        refused = self._refused
        while True:
            sent = request_body(messages, request, self._sampling, refused)
            body = {"model": self._model, **sent, **self._parameters}
            try:
                content = self._send(body, wait, used)
                break
            except EndpointError as error:
                parameter = refused_parameter(error, body)
                if parameter is None:
                    raise ModelError(
                        error.what, code="server", where=error.where, fix=error.fix, status=error.status
                    ) from None
                refused |= {parameter}
        # Recorded only after the same request without these parameters succeeded.
        with self._lock:
            self._refused |= refused
        text = read_text(content, self._endpoint, self._sampling["max_tokens"])
        served = content.get("model")
        unwanted = {"max_tokens"} if request.schema else {"max_tokens", *LEVELS}
        return Reply(
            text, model=served if isinstance(served, str) else "", not_applied=tuple(sorted(refused - unwanted))
        )

    def _send(self, body: Mapping[str, Any], wait: Wait, used: list[Usage]) -> Any:
        """Send a body within all limits, count it, and return the response."""

        def expected() -> Usage:
            usage = estimated_usage(body["messages"], self._sampling["max_tokens"] or self._longest_output)
            return replace(usage, input_tokens=math.ceil(usage.input_tokens * self._excess))

        def once() -> tuple[Any, Usage]:
            with self._slots:
                wait(0)
                sent = self._pace.enter(estimate.input_tokens + estimate.output_tokens, wait)
                began = time.monotonic()
                try:
                    content = self._endpoint.post(PATH, body)
                    raise_error(content, self._endpoint)
                except EndpointError as error:
                    if error.retry_after:
                        self._pace.pause(min(error.retry_after, _LONGEST_WAIT))
                    # An empty account has the same status as a busy server.
                    error.retryable &= "insufficient_quota" not in error.body
                    raise
                usage = reported_usage(content, estimate)
                sent.tokens = usage.input_tokens + usage.output_tokens
                return content, replace(usage, seconds=time.monotonic() - began)

        with self._meter.reserving(expected) as estimate:
            try:
                content, usage = call_with_retries(once, attempts=self._retries + 1, longest=_LONGEST_WAIT, wait=wait)
            except InputError as error:  # the environment variable was unset
                raise ModelError(error.what, code="server", where=error.where, fix=error.fix) from None
            self._meter.add(usage)
        used.append(usage)
        with self._lock:
            self._longest_output = max(self._longest_output, usage.output_tokens)
            if not usage.estimated:
                ratio = usage.input_tokens / estimated_usage(body["messages"], 0).input_tokens
                self._excess = max(self._excess, ratio)
        return content


def _plain_parameters(additional: Mapping[str, Any] | None) -> dict[str, Any]:
    taken = RESERVED & set(additional or ())
    if taken:
        raise InputError(
            f"{min(taken)} is not an additional parameter",
            where="parameters",
            fix="pass it as the argument of that name, if there is one",
        )
    try:
        parameters: dict[str, Any] = json.loads(json.dumps(dict(additional or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"parameters must be JSON values: {error}",
            where="parameters",
            fix='pass them as {"reasoning_effort": "low"}',
        ) from None
    return parameters


def _prices(per_input: float | None, per_output: float | None, max_cost: float | None) -> tuple[float, float] | None:
    if max_cost is not None:
        number("max_cost", max_cost, above=True)
    if per_input is None and per_output is None and max_cost is None:
        return None
    if per_input is None or per_output is None:
        raise InputError(
            "costs need both prices",
            where="input_price, output_price",
            fix="pass the prices per million tokens: input_price=0.5, output_price=1.5",
        )
    return number("input_price", per_input), number("output_price", per_output)
