"""Output to terminals, pipes, and files, and display of progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

import rankgauge
from rankgauge.cli.parameters import declare, option
from rankgauge.core.escaping import for_html, for_terminal
from rankgauge.core.progress import showing, status_line

if TYPE_CHECKING:
    from rankgauge.rendering import Result

_FORMATS = ("table", "markdown", "latex", "html", "csv", "json")

_PLAIN = str.maketrans(
    {
        "─": "-",
        "•": "*",
        "–": "-",
        "×": "x",
        "≥": ">=",
        "²": "2",
        "→": ">",
        "↑": "^",
        "↓": "v",
        "·": ".",
        "…": "~",
        "“": '"',
        "”": '"',
        "█": "#",
        "†": "+",
        "‡": "-",
    }
)


def print_text(text: str, *, color: bool = False, err: bool = False) -> None:
    """Print a report to standard output (or error).

    Args:
        text: Whole lines, in which external text is escaped.
        color: Whether the text has colors.
        err: Whether to print to standard error.
    """
    # Use ASCII lines if the encoding lacks box-drawing characters.
    stream = sys.stderr if err else sys.stdout
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        text = text.translate(_PLAIN)
    click.echo(text, nl=False, color=color, err=err)


def print_result(
    result: Result | Sequence[Result], format: str = "table", options: rankgauge.reports.Options | None = None
) -> None:
    """Print results to standard output.

    Args:
        result: One or more results.
        format: The output format.
        options: Options of the report.
    """
    color = _in_color(format)
    chosen = replace(options or rankgauge.reports.Options(), color=color)
    _print_formatted(rankgauge.reports.render(result, format, chosen), format, color=color)


def _print_formatted(text: str, format: str, *, color: bool) -> None:
    """Print a formatted text; the HTML texts of a command become one page, printed when the command ends."""
    if format != "html":
        print_text(text, color=color)
        return
    context = click.get_current_context()
    parts = context.meta.setdefault(__name__, [])
    if not parts:
        context.call_on_close(lambda: print_text(rankgauge.reports.html_page(context.command_path, parts)))
    parts.append(text)


def _in_color(format: str) -> bool:
    return format == "table" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _format(*more: str | None) -> Any:
    return option("The output format.", "--as", default="table", type=click.Choice([*_FORMATS, *more]))


@dataclass(frozen=True)
class Output:
    """How a command prints its result."""

    format: str = _format()
    quiet: bool = option("Print only numbers: no titles, notes, warnings, or next step.", "-q, --quiet")
    full: bool = False

    @property
    def is_data(self) -> bool:
        """Whether a program reads the output: notes are not part of it."""
        return self.format in {"csv", "json"}

    def print(self, result: Result | Sequence[Result], options: rankgauge.reports.Options | None = None) -> None:
        """Print results to standard output."""
        chosen = options or rankgauge.reports.Options()
        print_result(result, self.format, replace(chosen, full=self.full, quiet=self.quiet))

    def print_plain(self, text: str) -> None:
        """Print a text that no format changes, escaped for a terminal; pages and data have no blank lines between."""
        if text.strip() or self.format in {"table", "markdown", "latex"}:
            page = self.format == "html"
            _print_formatted(f"<pre>{for_html(text)}</pre>" if page else text, self.format, color=False)

    def print_notes(self, notes: Iterable[str]) -> None:
        """Print those notes to standard error that the format, or --quiet, leaves out."""
        for note in notes:
            # JSON has all notes, but warnings must always be visible.
            if self.format in {"csv", "trec"} or ((self.format == "json" or self.quiet) and "WARNING" in note):
                print_message(note)

    def print_next_step(self, step: str) -> None:
        """Print the recommended next step, if any, after a short table."""
        if step and self.format == "table" and not self.full and not self.quiet:
            print_text(f"Next step: {for_terminal(step)}\n")

    def print_table(self, table: rankgauge.rendering.Table) -> None:
        """Print a table to standard output."""
        color = _in_color(self.format)
        shown = replace(table, title="", notes=()) if self.quiet else table
        _print_formatted(rankgauge.rendering.render_table(shown, self.format, color=color), self.format, color=color)


def output_format(full: str = "", *more: str | None) -> Any:
    """Declare the options of the output anew.

    Args:
        full: The help text of --full; without one, there is no such option.
        more: Additional formats of this command; None: it prints tables only.
    """
    shown: Any = option(full) if full else False
    return declare(format="table" if None in more else _format(*more), full=shown)


def print_message(line: str) -> None:
    """Print one line, escaped, to standard error."""
    click.echo(for_terminal(line), err=True)


def check_writable(path: str | None) -> None:
    """Reject a file that cannot be written, before any work is done; "-" is always writable."""
    if path is None or path == "-":
        return
    from pathlib import Path

    target = Path(path)
    if target.is_dir():
        raise rankgauge.InputError("this is a folder", where=path, fix="name a file in it")
    folder = target.parent
    if not folder.is_dir():
        raise unwritable(path, f"there is no folder {str(folder)!r}")
    if not os.access(folder if not target.exists() else target, os.W_OK):
        raise unwritable(path, "permission denied")


def make_folder(path: str) -> None:
    """Create a folder, unless it exists."""
    from pathlib import Path

    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise rankgauge.InputError(
            f"cannot be created: {error.strerror}", where=path, fix="name another folder"
        ) from None


def write_report(path: str, text: str) -> None:
    """Write a complete file or, on an error, nothing; "-" is standard output."""
    if path == "-":
        click.echo(text, nl=False)
        return
    from rankgauge.core.files import write_atomically

    with write_atomically(path) as stream:
        stream.write(text.encode(errors="backslashreplace"))


def save_plot(plot: rankgauge.rendering.Plot, path: str) -> None:
    """Write a plot to a file."""
    plot.save(path)
    print_message(f"wrote {path}")


def write_baseline(
    baseline: rankgauge.Baseline, path: str, rules: rankgauge.GateRules, anchor: str | None = None, *, force: bool
) -> None:
    """Write a baseline, and print its means and those of the replaced baseline."""
    replaced = rankgauge.gates.update_baseline(baseline, path, rules, anchor=anchor, force=force)
    if replaced:
        print_text(f"{for_terminal(replaced)}\n")
    means = ", ".join(f"{name} {baseline.mean(name):.4f}" for name in baseline.measures)
    units = "questions" if baseline.unit == "question" else "queries"
    message = f"wrote {path}: {baseline.run_name}, {len(baseline.queries)} {units}, {means}"
    print_text(f"{for_terminal(message)}\n")


def unwritable(path: str, reason: str) -> rankgauge.InputError:
    """Return the error for a file that cannot be written."""
    return rankgauge.InputError(
        f"cannot be written: {reason}", where=path, fix="check that the folder exists and is writable"
    )


_AFTER = 1.0


@contextmanager
def working(what: str, *, shares: bool = False) -> Iterator[None]:
    """Show a line with `what` and the elapsed time on a terminal, unless the work is quick.

    With `shares`, also show the reported share of the work.
    """
    if not sys.stderr.isatty():  # in a job, progress is stored
        yield
        return
    with status_line(for_terminal(what), after=_AFTER) as replace_text:

        def show(share: float, done: str) -> None:
            replace_text(for_terminal(f"{what}: {share:.0%} {done}"))

        with showing(show) if shares else nullcontext():
            yield
