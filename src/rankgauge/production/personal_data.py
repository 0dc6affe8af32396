"""Replacement of personal data with a recognizable format in texts of a log."""

from __future__ import annotations

import re

from rankgauge.core.redaction import redact

# Patterns and replacements, in search order. Lengths are limited to avoid quadratic time.
_PATTERNS = (
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"), "[email]"),
    (re.compile(r"\b(?:https?://|www\.)[^\s<>\"']{1,2000}", re.IGNORECASE), "[url]"),
    (re.compile(r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){3,7}(?: ?[A-Za-z0-9]{1,3})?\b"), "[iban]"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), "[ip address]"),
    (re.compile(r"\b[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){7}\b"), "[ip address]"),
)
_NUMBER = re.compile(r"(?<![\w.])\+?\(?\d(?:[ ()./-]{0,2}\d){6,30}(?!\w)")
_DATE = re.compile(r"\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4} ?[/-] ?\d{4}")
_DIGITS = 8  # digits of a telephone, customer, or card number; 7 after a plus sign


def scrub(text: str) -> str:
    """Replace personal data with a recognizable format: addresses, numbers, and secrets.

    E-mail addresses become ``[email]``, links ``[url]``, account numbers ``[iban]``, IP addresses
    ``[ip address]``, numbers of eight digits or more (telephones, cards, customers) ``[number]``,
    and keys and passwords ``***``. Dates are kept. Names of people and places cannot be recognized
    and are kept.

    Example:
        >>> scrub("refund for jo@example.org, call +44 20 7946 0958 before 2026-03-01")
        'refund for [email], call [number] before 2026-03-01'
    """
    for pattern, mark in _PATTERNS:
        text = pattern.sub(mark, text)
    return redact(_NUMBER.sub(_number, text))


def _number(found: re.Match[str]) -> str:
    whole = found.group()
    digits = sum(character.isdigit() for character in whole)
    if _DATE.fullmatch(whole) or digits < _DIGITS - whole.startswith("+"):
        return whole
    return "[number]"
