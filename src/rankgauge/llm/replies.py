"""Chat completions: requests, replies with JSON, usage, errors, and differences between servers."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any, TypeGuard

from rankgauge.core.arguments import integer, is_number, known_name
from rankgauge.core.http_client import RETRYABLE, Endpoint, EndpointError
from rankgauge.core.libraries import library
from rankgauge.core.text import many
from rankgauge.errors import InputError, RankgaugeError

_MOST_COUNTED = 10**8  # per call; no model accepts more tokens
_ROLES = ("system", "developer", "user", "assistant")


@dataclass(frozen=True)
class Usage:
    """Calls, tokens, and cost; usages can be added and subtracted.

    Attributes:
        calls: Number of responses, including repairs.
        cached: Number of replies from the cache, which cost nothing.
        failed: Number of missing results.
        input_tokens: Tokens of the messages, as counted by the server.
        output_tokens: Tokens of the responses, including reasoning.
        estimated: Number of calls whose tokens are estimated because the server did not report
            them.
        seconds: Time of the calls, summed over concurrent calls.
        cost: Price of the tokens, without discounts; None without prices.

    Example:
        >>> print(Usage(calls=2, cached=1, input_tokens=900, output_tokens=80, cost=0.0042))
        2 calls, 1 cached, 0 failed; 900 input and 80 output tokens; cost 0.0042; 0.0 s
    """

    calls: int = 0
    cached: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: int = 0
    seconds: float = 0.0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        known = self.cost is not None and other.cost is not None
        return Usage(
            self.calls + other.calls,
            self.cached + other.cached,
            self.failed + other.failed,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.estimated + other.estimated,
            self.seconds + other.seconds,
            (self.cost or 0.0) + (other.cost or 0.0) if known else None,
        )

    def __sub__(self, other: Usage) -> Usage:
        known = {name: value for name, value in asdict(other).items() if value is not None}
        return self + replace(other, **{name: -value for name, value in known.items()})

    def __str__(self) -> str:
        tokens = f"{self.input_tokens:,} input and {self.output_tokens:,} output tokens"
        if self.estimated:
            tokens += f" (estimated for {self.estimated:,} of the calls)"
        cost = "" if self.cost is None else f"; cost {self.cost:.4f}"
        calls = f"{many(self.calls, 'call')}, {self.cached:,} cached, {self.failed:,} failed"
        return f"{calls}; {tokens}{cost}; {self.seconds:.1f} s"


@dataclass(frozen=True)
class ChatRequest:
    """Messages for a language model.

    Attributes:
        messages: A text (a single user message), or messages with ``role`` and ``content``.
        schema: The JSON schema of the reply, an object without ``$ref``; None for plain text.
        sample: The sample number, which distinguishes samples in the cache and is added to the
            seed.

    Raises:
        InputError: If the messages or the schema are invalid, or the schema has a ``$ref``.
        MissingExtra: If jsonschema is not installed.

    Example:
        >>> ChatRequest("Is water wet?").messages
        ({'role': 'user', 'content': 'Is water wet?'},)
    """

    messages: Any
    schema: Mapping[str, Any] | None = None
    sample: int = 0

    def __post_init__(self) -> None:
        messages = self.messages
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if not (
            isinstance(messages, Sequence)
            and messages
            and all(
                isinstance(message, Mapping)
                and set(message) == {"role", "content"}
                and message["role"] in _ROLES
                and isinstance(message["content"], str)
                for message in messages
            )
        ):
            raise InputError(
                f"messages must be a text, or mappings with role ({', '.join(_ROLES)}) and content (a text)",
                where="messages",
                fix='write [{"role": "user", "content": "..."}]',
            )
        object.__setattr__(self, "messages", tuple(dict(message) for message in messages))
        integer("sample", self.sample, least=0)
        schema: Any = self.schema
        if schema is not None and not (isinstance(schema, Mapping) and schema.get("type") == "object"):
            raise InputError(
                "the schema of a reply must describe an object",
                where="schema",
                fix='write {"type": "object", "properties": {...}}',
            )
        if schema is not None:
            _validator(json.dumps(schema, sort_keys=True))


@dataclass(frozen=True)
class Reply:
    """Reply of a language model.

    Attributes:
        text: The text, without reasoning.
        data: The object that matches the schema; None without a schema.
        model: The name of the model reported by the server.
        usage: The usage of the reply, including repairs; zero if it came from the cache.
        cached: Whether the reply came from the cache.
        repairs: Number of requests to correct an invalid reply.
        not_applied: Parameters that the server rejected: ``temperature``, ``seed``,
            ``json_schema``, ``json_object``.
    """

    text: str
    data: Any = None
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    cached: bool = False
    repairs: int = 0
    not_applied: tuple[str, ...] = ()


class ModelError(RankgaugeError):
    """Error for a missing reply.

    Attributes:
        code: The reason: ``server`` (no response, or an error), ``protocol`` (not a chat
            completion), ``refused`` (by the model or a filter), ``truncated`` (too long),
            ``empty``, ``invalid`` (does not match the schema after all repairs), ``budget`` (the
            next call could exceed ``max_cost``), or ``skipped`` (not sent, because the server or
            the cache failed).
        status: The HTTP status of an error response.
        text: The text of the model, if any.
        usage: The usage of the failed calls.
    """

    def __init__(
        self, what: str, *, code: str, where: str = "", fix: str = "", status: int | None = None, text: str = ""
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.code = code
        self.status = status
        self.text = text
        self.usage = Usage(failed=1)


def is_count(value: Any) -> TypeGuard[float]:
    """Return whether a server reports a plausible number of tokens, texts, or units."""
    return is_number(value) and 0 <= value <= _MOST_COUNTED


def prompt_texts(
    package: str, names: Collection[str], replaced: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return prompts by name: the files of a package (``prompts/NAME.md``), or their replacements.

    Raises:
        UnknownName: If a replacement has another name.
    """
    for name in replaced:
        known_name("prompt", name, names, where="prompts")
    folder = resources.files(package) / "prompts"
    return {name: replaced.get(name) or (folder / f"{name}.md").read_text("utf-8") for name in names}


def prompt_version(name: str, text: str) -> str:
    """Return the name of a prompt with the hash of its text.

    Example:
        >>> prompt_version("question", "Write a question.")
        'question-52c4478a'
    """
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def fenced_messages(prompt: str, parts: Mapping[str, str], last: str) -> list[dict[str, str]]:
    """Return the messages of a prompt with texts, each enclosed in marked lines.

    The mark is derived from the first text and occurs in none of them, so that no text can end its
    enclosure.

    Args:
        prompt: The system message; ``{mark}`` is replaced.
        parts: The texts by title.
        last: The text that follows the others.
    """
    texts = "\n".join(parts.values()).casefold()
    mark = next(iter(parts.values()))
    while True:
        mark = hashlib.sha256(mark.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if mark not in texts:
            break
    fenced = [f"{title}:\n<<<DATA {mark}>>>\n{text}\n<<<END {mark}>>>" for title, text in parts.items()]
    return [
        {"role": "system", "content": prompt.replace("{mark}", mark)},
        {"role": "user", "content": "\n\n".join([*fenced, last])},
    ]


# Maximum number of positions at which JSON parsing is tried, which bounds the time.
_MOST_STARTS = 200
_SHOWN = 300


class InvalidReply(ValueError):  # noqa: N818 - about a reply
    """Error for a reply without a valid object; the message is for the model."""


def object_schema(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def instruction(schema: Mapping[str, Any]) -> str:
    """Return the instruction that describes the reply to servers without support for schemas."""
    return f"Reply with only JSON that conforms to this JSON schema: {json.dumps(schema)}"


def repair_request(schema: Mapping[str, Any], fault: str) -> str:
    """Return the message that requests a valid reply after an invalid one."""
    return f"The reply is invalid: {fault}. {instruction(schema)}"


def read_reply(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the only valid object of a text: alone, in a Markdown fence, or within prose.

    Raises:
        InvalidReply: If there is no valid object, or there are different valid objects.
    """
    validator = _validator(json.dumps(schema, sort_keys=True))
    valid: list[Any] = []
    fault = "it has no JSON object"
    for value in _values(text):
        fault = _fault(validator, value)
        if not fault:
            valid.append(value)
    if not valid:
        raise InvalidReply(fault)
    if len(valid) > 1:
        different = len({json.dumps(value, sort_keys=True) for value in valid})
        if different > 1:
            raise InvalidReply(f"it has {different} different JSON objects, and one was requested")
    return valid[-1]


def _values(text: str) -> Iterator[Any]:
    """Yield the objects of a text that are not nested in another.

    Raises:
        InvalidReply: If an object is truncated or not JSON. Braces in prose or LaTeX are skipped.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_no_number, parse_float=_finite)
    end = 0
    fault = ""
    any_object = False
    for _ in range(_MOST_STARTS):
        start = text.find("{", end)
        if start < 0:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except InvalidReply:
            raise
        except json.JSONDecodeError as error:
            fault = f"its JSON cannot be read: {error.msg} at character {error.pos + 1}"
            if text[start + 1 : error.pos].strip():
                raise InvalidReply(fault) from None
            end = start + 1
        except (ValueError, RecursionError):  # a number with too many digits, or too many brackets
            raise InvalidReply("its JSON has a value that is too large") from None
        else:
            any_object = True
            yield value
    if fault and not any_object:
        raise InvalidReply(fault)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise InvalidReply("its JSON has a key twice in one object")
    return value


def _no_number(name: str) -> Any:
    raise InvalidReply(f"its JSON has {name}, which is not a JSON number")


@lru_cache(maxsize=1024)
def _validator(schema_text: str) -> Any:
    """Return the cached validator of a schema given as JSON."""
    jsonschema = library("jsonschema", extra="llm", of="a reply with a schema")
    if '"$ref"' in schema_text:
        raise InputError(
            "the schema has a $ref, which many servers do not support", where="schema", fix="expand the schema"
        )
    schema = json.loads(schema_text)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InputError(
            f"not a JSON schema: {error.message:.200}", where="schema", fix="see https://json-schema.org/draft/2020-12"
        ) from None
    return jsonschema.Draft202012Validator(schema)


def _fault(validator: Any, value: Any) -> str:
    """Return the most relevant error of a value; empty if valid."""
    best_match = library("jsonschema.exceptions", extra="llm", of="a reply with a schema").best_match
    error = best_match(validator.iter_errors(value))
    if error is None:
        return ""
    message = error.message
    if len(message) > _SHOWN:
        message = f"{message[: _SHOWN // 2]} ... {message[-_SHOWN // 2 :]}"
    return f"{error.json_path}: {message}"


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
        if level == "json_schema":
            name = re.sub(r"\W", "_", str(request.schema.get("title", "reply")), flags=re.ASCII)[:64]
            strict = {"name": name, "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": level, level: strict}
        else:
            if level is not None:
                body["response_format"] = {"type": level}
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
    sizes = [len(message["content"].encode("utf-8", "replace")) for message in messages]
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
