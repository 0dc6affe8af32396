"""Prompts that enclose texts from outside as data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def prompt_version(name: str, text: str) -> str:
    """Return the name of a prompt and the hash of its text.

    Example:
        >>> prompt_version("question", "Write a question.")
        'question-52c4478a'
    """
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def fenced_messages(prompt: str, parts: Mapping[str, str], last: str) -> list[dict[str, str]]:
    """Return the messages of a prompt and the texts that it is about, each between two marks.

    The first text decides the mark, one that none of them has: no text can end its own data.

    Args:
        prompt: The message of the system; ``{mark}`` is replaced.
        parts: The texts by title.
        last: What follows the texts.
    """
    texts = "\n".join(parts.values()).casefold()
    mark = next(iter(parts.values()))
    while True:
        mark = hashlib.sha256(mark.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if mark not in texts:
            break
    fenced = [
        f"{title}:\n<<<DATA {mark}>>>\n{text}\n<<<END {mark}>>>" for title, text in parts.items()
    ]
    return [
        {"role": "system", "content": prompt.replace("{mark}", mark)},
        {"role": "user", "content": "\n\n".join([*fenced, last])},
    ]
