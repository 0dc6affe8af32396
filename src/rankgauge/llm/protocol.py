"""Protocol of chat completions: requests, responses, and differences between servers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankgauge.core.http_client import RETRYABLE, Endpoint, EndpointError
from rankgauge.llm.replies import ChatRequest, ModelError, Usage, instruction, is_count, response_format

PATH = "chat/completions"
# Types of response_format, strictest first; if none is supported, it is omitted.
LEVELS = ("json_schema", "json_object")
# Parameters that have a separate argument or are not supported by the client.
RESERVED = frozenset(
    {
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "response_format",
        "seed",
        "stream",
        "temperature",
    }
)
_REFUSALS = frozenset({400, 422, 501})
_REFUSED = re.compile(r"(?i)support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|allowed|available|deprecated")
_FORMAT = re.compile(r"(?i)response[ _]?format|json_schema|json_object|structured output")
_REASONING = re.compile(r"\A\s*<think>.*?(</think>|\Z)", re.DOTALL)
# Lower than in most texts, so that estimates are conservative.
_BYTES_PER_TOKEN = 3
_TOKENS_PER_MESSAGE = 10


def request_body(
    messages: Sequence[Mapping[str, str]], request: ChatRequest, sampling: Mapping[str, Any], refused: frozenset[str]
) -> dict[str, Any]:
    """Return the body of a request without parameters that the server rejects."""
    body: dict[str, Any] = {"messages": list(messages)}
    for name, value in sampling.items():
        if value is not None and name not in refused:
            body[name] = value + request.sample if name == "seed" else value
        elif value is not None and name == "max_tokens":
            body["max_completion_tokens"] = value
    if request.schema is not None:
        level = next((level for level in LEVELS if level not in refused), None)
        if level is not None:
            body["response_format"] = response_format(request.schema, level)
        if level != "json_schema":
            rule, last = instruction(request.schema), messages[-1]
            if rule not in last["content"]:
                body["messages"][-1] = {**last, "content": f"{last['content']}\n\n{rule}"}
    return body


def refused_parameter(error: EndpointError, body: Mapping[str, Any]) -> str | None:
    """Return the unsupported parameter, or level of ``response_format``, that an error names."""
    if error.status not in _REFUSALS:
        return None
    try:
        named = json.loads(error.body)["error"]["param"]
    except (ValueError, LookupError, TypeError):
        named = None
    words = named if isinstance(named, str) else error.body
    if "response_format" in body and _FORMAT.search(words):
        return str(body["response_format"]["type"])
    for name in ("max_tokens", "temperature", "seed"):
        if name in body and re.search(rf"\b{name}\b", words) and _REFUSED.search(error.body):
            return name
    return None


def raise_error(content: Any, endpoint: Endpoint) -> None:
    """Raise an error that a gateway sent with status 200."""
    error = content.get("error") if isinstance(content, Mapping) else None
    if error and not content.get("choices"):
        code = error.get("code") if isinstance(error, Mapping) else None
        status = code if isinstance(code, int) and not isinstance(code, bool) else None
        text = endpoint.quoted(json.dumps(error))
        raise EndpointError(
            f"the server sent an error: {text}",
            where=f"POST {endpoint.shown} /{PATH}",
            fix="see the server's message",
            status=status,
            retryable=status in RETRYABLE,
            body=text,
        )


def read_text(content: Any, endpoint: Endpoint, limit: int | None) -> str:
    """Return the text of a response, without reasoning.

    Raises:
        ModelError: If the response is invalid, refused, truncated, or empty.
    """
    choices = content.get("choices") if isinstance(content, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    where = f"POST {endpoint.shown} /{PATH}"
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise ModelError(
            f"the server returned {endpoint.quoted(content)}, which has no message",
            code="protocol",
            where=where,
            fix="check the URL: the client uses OpenAI's chat completions API",
        )
    written = _joined(message.get("content"))
    text = _REASONING.sub("", written).strip()
    refusal, ended = message.get("refusal"), choice.get("finish_reason")
    if refusal or ended == "content_filter":
        by = f": {endpoint.quoted(refusal)}" if refusal else ", by a content filter"
        raise ModelError(
            f"the model refused{by}",
            code="refused",
            where=where,
            text=text,
            fix="rephrase the request, or use another model",
        )
    if ended == "length":
        raise ModelError(
            f"the reply was cut off by {f'max_tokens={limit}' if limit else 'its length'}",
            code="truncated",
            where=where,
            text=text,
            fix="raise max_tokens, which reasoning counts towards, or request less at once",
        )
    if not text:
        raise ModelError(
            "the reply is empty" + (" except for reasoning" if written.strip() else ""),
            code="empty",
            where=where,
            fix="check that the model supports chat, and that max_tokens leaves room for a reply",
        )
    return text


def _joined(content: Any) -> str:
    """Return the text of a message, which some servers send in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def estimated_usage(messages: Sequence[Mapping[str, str]], output: int) -> Usage:
    """Estimate the tokens of a call before it is made."""
    sizes = [len(one["content"].encode("utf-8", "replace")) for one in messages]
    tokens = sum(size // _BYTES_PER_TOKEN + _TOKENS_PER_MESSAGE for size in sizes)
    return Usage(calls=1, input_tokens=tokens, output_tokens=output, estimated=1)


def reported_usage(content: Any, estimate: Usage) -> Usage:
    """Return the tokens of a response, estimated if the server does not report them."""
    used = content.get("usage") if isinstance(content, Mapping) else None
    used = used if isinstance(used, Mapping) else {}
    counts = [used.get(name) for name in ("prompt_tokens", "completion_tokens")]
    if all(isinstance(count, int) and is_count(count) for count in counts):
        return Usage(1, input_tokens=counts[0] or 0, output_tokens=counts[1] or 0)
    return replace(estimate, output_tokens=len(json.dumps(content)) // _BYTES_PER_TOKEN)
