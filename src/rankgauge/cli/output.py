"""Printing to terminals, pipes, and files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

import rankgauge
from rankgauge.core.escaping import for_terminal

if TYPE_CHECKING:
    from rankgauge.rendering import Result

__all__ = [
    "QUIET",
    "check_writable",
    "counted",
    "print_message",
    "print_result",
    "print_table",
    "print_text",
    "quiet",
    "write_report",
]

QUIET = "rankgauge.quiet"  # the name of the option in the context of a command

_PLAIN = str.maketrans(
    {
        "─": "-", "•": "*", "–": "-", "×": "x", "≥": ">=", "²": "2", "→": ">", "↑": "^",
        "↓": "v", "·": ".", "…": "~", "“": '"', "”": '"', "█": "#",
        "†": "+", "‡": "-",
    }
)  # fmt: skip


def print_text(text: str, *, color: bool = False, err: bool = False) -> None:
    """Print a report to standard output (or error).

    Args:
        text: Whole lines, in which text from outside is escaped.
        color: Whether it has colours.
        err: Whether it goes to standard error.
    """
    # ASCII lines if the encoding lacks box-drawing characters.
    stream = sys.stderr if err else sys.stdout
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        text = text.translate(_PLAIN)
    click.echo(text, nl=False, color=color, err=err)


def quiet() -> bool:
    """Whether the command prints only numbers."""
    return bool(click.get_current_context().meta.get(QUIET))


def print_result(
    result: Result | Sequence[Result], format: str, options: rankgauge.reports.Options | None = None
) -> None:
    """Print results to standard output.

    Args:
        result: One or more.
        format: The output format.
        options: What is shown.
    """
    color = format == "table" and sys.stdout.isatty()
    chosen = replace(options or rankgauge.reports.Options(), color=color, quiet=quiet())
    print_text(rankgauge.reports.render(result, format, chosen), color=color)


def print_table(table: rankgauge.rendering.Table, format: str) -> None:
    """Print a table to standard output."""
    color = format == "table" and sys.stdout.isatty()
    shown = replace(table, title="", notes=()) if quiet() else table
    print_text(rankgauge.rendering.render_table(shown, format, color=color), color=color)


def print_message(line: str) -> None:
    """Print one line to standard error, with its text escaped."""
    click.echo(for_terminal(line), err=True)


def counted(number: int) -> str:
    """The number of queries with its noun."""
    return "1 query" if number == 1 else f"{number} queries"


def check_writable(path: str) -> None:
    """Refuse, before any work is done, a file that cannot be written; "-" always can."""
    if path == "-":
        return
    from pathlib import Path

    target = Path(path)
    if target.is_dir():
        raise rankgauge.InputError("this is a folder", where=path, fix="name a file in it")
    folder = target.parent
    if not folder.is_dir():
        raise _unwritable(path, f"there is no folder {str(folder)!r}")
    if not os.access(folder if not target.exists() else target, os.W_OK):
        raise _unwritable(path, "permission denied")


def write_report(path: str, text: str) -> None:
    """Write a file: the whole of it or, if something fails, nothing. "-" is standard output."""
    if path == "-":
        click.echo(text, nl=False)
        return
    from rankgauge.core.files import write_atomically

    with write_atomically(path) as stream:
        stream.write(text.encode())


def _unwritable(path: str, reason: str) -> rankgauge.InputError:
    return rankgauge.InputError(
        f"cannot be written: {reason}", where=path,
        fix="check that the folder exists and is writable",
    )  # fmt: skip
