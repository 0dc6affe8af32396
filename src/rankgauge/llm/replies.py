"""Requests to a language model, its replies, their usage, and errors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeGuard

from rankgauge.core.arguments import integer, is_number
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
        calls = "1 call" if self.calls == 1 else f"{self.calls:,} calls"
        return f"{calls}, {self.cached:,} cached, {self.failed:,} failed; {tokens}{cost}; {self.seconds:.1f} s"


@dataclass(frozen=True)
class ChatRequest:
    """Messages for a language model.

    Attributes:
        messages: A text (a single user message), or messages with ``role`` and ``content``.
        schema: The JSON schema of the reply, an object without ``$ref``; None for plain text.
        sample: The sample number, which distinguishes samples in the cache and is added to the
            seed.

    Raises:
        InputError: If the messages or the schema are invalid.

    Example:
        >>> ChatRequest("Is water wet?").messages
        ({'role': 'user', 'content': 'Is water wet?'},)
    """

    messages: Any
    schema: Mapping[str, Any] | None = None
    sample: int = 0

    def __post_init__(self) -> None:
        given = self.messages
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        fits = isinstance(given, Sequence) and bool(given) and all(map(_is_message, given))
        if not fits:
            raise InputError(
                f"messages must be a text, or mappings with role ({', '.join(_ROLES)}) and content (a text)",
                where="messages",
                fix='write [{"role": "user", "content": "..."}]',
            )
        object.__setattr__(self, "messages", tuple(dict(message) for message in given))
        integer("sample", self.sample, least=0)
        schema: Any = self.schema
        if schema is not None and not (isinstance(schema, Mapping) and schema.get("type") == "object"):
            raise InputError(
                "the schema of a reply must describe an object",
                where="schema",
                fix='write {"type": "object", "properties": {...}}',
            )


def _is_message(given: Any) -> bool:
    return (
        isinstance(given, Mapping)
        and set(given) == {"role", "content"}
        and given["role"] in _ROLES
        and isinstance(given["content"], str)
    )


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
