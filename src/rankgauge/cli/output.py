"""What is printed, on whatever can be printed on."""

from __future__ import annotations

import sys

import click

__all__ = ["counted", "say"]

_PLAIN = str.maketrans(
    {
        "─": "-", "•": "*", "–": "-", "×": "x", "≥": ">=", "²": "2", "→": ">", "↑": "^",
        "↓": "v", "·": ".", "…": "~", "“": '"', "”": '"', "█": "#",
        "†": "+", "‡": "-",
    }
)  # fmt: skip


def say(text: str, *, color: bool = False, err: bool = False) -> None:
    """Print to standard output (or error); where its encoding lacks our lines, plain ones."""
    stream = sys.stderr if err else sys.stdout
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        text = text.translate(_PLAIN)
    click.echo(text, nl=False, color=color, err=err)


def counted(number: int) -> str:
    """So many queries, in words."""
    return "1 query" if number == 1 else f"{number} queries"
