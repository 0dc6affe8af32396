"""Tables as data, and their output for terminal, Markdown, LaTeX, HTML, CSV, and JSON.

A table does not depend on measures: it has columns, rows of cells, and notes. Cells are text,
numbers, or None.
"""

from __future__ import annotations

import functools
import io
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from rankgauge.core.escaping import for_csv, for_latex, for_markdown, for_terminal, templates
from rankgauge.core.text import keep, many

if TYPE_CHECKING:
    from jinja2 import Template

Cell: TypeAlias = str | float | None
Format: TypeAlias = Literal["table", "markdown", "latex", "html", "csv", "json"]

_NONE = "–"
_STAR = "*"
_BEST = f"{_STAR} best run"
WIDTH = 80
_LEAST = 8  # minimum width of a truncated column
_PROSE = 24  # width above which a text is wrapped, and minimum width of a wrapped column
_NAMED = 2  # columns or tables that the last note of a short output names
_GAPS = (3, 2)  # spaces between columns; fewer if a table is too wide
# Colors of cells on a terminal.
_STYLES = {"error": "31;1", "warning": "33;1", "info": "36;1", "FAIL": "31;1", "PASS": "32;1"}
# Non-Latin characters in our tables that are one cell wide.
_NARROW = frozenset("Δ–−•…“”≥≤→↑↓█†‡─")


class Detail(str):
    """Text in a table that only a full output shows.

    A heading, cell, or title marks the whole column, row, or table.
    """

    __slots__ = ()


class Signed(float):
    """Number in a table that is shown with its sign, such as a difference."""


@dataclass(frozen=True)
class Table:
    """A table with title and notes; without columns, only these. Short outputs omit each `Detail`.

    Attributes:
        columns: Column headings.
        rows: Rows, with a cell for each column.
        title: Title.
        subtitle: Line below the title on a terminal.
        notes: Lines below the table.
        width: Maximum width on a terminal; 0 for no limit. Title, notes, and long texts in cells
            are wrapped; columns that still do not fit continue in a table below.
        digits: Decimals of numbers that are not of type ``int``.
        best: (row, column) of the best values, shown in bold if the format supports it.
        starred: Whether best values also have a star on a terminal, with a note.
        marks: (row, column) to a suffix of the cell, such as a significance mark that a note
            explains; CSV and JSON omit it.
        right: Right-aligned columns whose numbers are formatted text with varying precision.
        shortened: Columns whose texts are truncated on a terminal, the longest first, until the
            table fits `width`.
        abridged: Columns that are also `shortened` in a short output.
        fixed: Columns in which spaces matter, such as a text plot; in HTML, Markdown, and LaTeX,
            they are preformatted in a monospaced font.
        unit: Noun for a row, if details are counted.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    subtitle: str = ""
    width: int = WIDTH
    digits: int = 4
    best: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    starred: bool = False
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict, hash=False)
    right: frozenset[int] = field(default_factory=frozenset)
    shortened: frozenset[int] = field(default_factory=frozenset)
    abridged: frozenset[int] = field(default_factory=frozenset)
    fixed: frozenset[int] = field(default_factory=frozenset)
    unit: str = "row"

    def records(self) -> list[dict[str, Cell]]:
        """Return each row as a mapping of column to cell."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def text(self, cell: Cell) -> str:
        """Format a cell for display."""
        if cell is None or _is_nan(cell):
            return _NONE
        if isinstance(cell, str):
            return cell
        sign = "+" if isinstance(cell, Signed) else ""
        return str(cell) if isinstance(cell, int) else f"{cell:{sign}.{self.digits}f}"

    def escaped(self, escape: Callable[[str], str], fixed: Callable[[str], str] | None = None) -> Table:
        """Return the table with all texts escaped for a format; `fixed` escapes fixed columns."""
        by_column = [fixed if fixed and number in self.fixed else escape for number in range(len(self.columns))]
        return replace(
            self,
            columns=tuple(to(name) for to, name in zip(by_column, self.columns, strict=True)),
            rows=tuple(
                tuple(to(cell) if isinstance(cell, str) else cell for to, cell in zip(by_column, row, strict=True))
                for row in self.rows
            ),
            title=escape(self.title),
            subtitle=escape(self.subtitle),
            notes=tuple(map(escape, self.notes)),
            marks={place: escape(mark) for place, mark in self.marks.items()},
        )

    def part(self, *, rows: Sequence[int] | None = None, columns: Sequence[int] | None = None) -> Table:
        """Return a table of these rows or columns, with their marks."""
        down = range(len(self.rows)) if rows is None else rows
        across = range(len(self.columns)) if columns is None else columns
        row_of = {old: new for new, old in enumerate(down)}
        column_of = {old: new for new, old in enumerate(across)}

        return replace(
            self,
            columns=tuple(self.columns[n] for n in across),
            rows=tuple(tuple(self.rows[n][m] for m in across) for n in down),
            best=frozenset((row_of[n], column_of[m]) for n, m in self.best if n in row_of and m in column_of),
            marks={
                (row_of[n], column_of[m]): mark for (n, m), mark in self.marks.items() if n in row_of and m in column_of
            },
            right=frozenset(column_of[n] for n in self.right if n in column_of),
            shortened=frozenset(column_of[n] for n in self.shortened if n in column_of),
            abridged=frozenset(column_of[n] for n in self.abridged if n in column_of),
            fixed=frozenset(column_of[n] for n in self.fixed if n in column_of),
        )

    def marked(self, column: int) -> list[str] | None:
        """Return the cells of a column with stars and marks, aligned; None if it has no marks."""
        places = [(row, column) for row in range(len(self.rows))]
        marks = [(_STAR if self.starred and place in self.best else "") + self.marks.get(place, "") for place in places]
        if not any(marks):
            return None
        shown = [self.text(row[column]) for row in self.rows]
        if self.numeric(column):
            room = len(self.columns[column]) - max(map(len, marks))
            wide = max(room, *map(len, shown))
            shown = [text.rjust(wide) for text in shown]
        return [text + mark for text, mark in zip(shown, marks, strict=True)]

    def numeric(self, column: int) -> bool:
        """Return whether a column contains numbers and is right-aligned."""
        if column in self.right:
            return True
        cells = [row[column] for row in self.rows]
        return any(not isinstance(c, str) and c is not None for c in cells) and not any(
            isinstance(c, str) and c != "" for c in cells
        )


def _is_nan(cell: Cell) -> bool:
    return isinstance(cell, float) and math.isnan(cell)


def by_column(*columns: tuple[str, Iterable[Cell]] | bool) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Return headings and rows of a table from its columns, without those that are False.

    Example:
        >>> by_column(("run", ["bm25"]), False, ("nDCG@10", [0.5]))
        (('run', 'nDCG@10'), (('bm25', 0.5),))
    """
    shown = [column for column in columns if not isinstance(column, bool)]
    return tuple(name for name, _ in shown), tuple(zip(*(cells for _, cells in shown), strict=True))


def first_rows(rows: Iterable[tuple[Cell, ...]], shown: int) -> Iterator[tuple[Cell, ...]]:
    """Yield rows, those after the first as details."""
    for place, (head, *cells) in enumerate(rows):
        yield (head if place < shown else Detail(head), *cells)


def short_tables(parts: Iterable[Table | str]) -> list[Table | str]:
    """Return the parts of a short output: the first warning, and no details; the last note counts the rest.

    Example:
        >>> short_tables([Table(("run", Detail("depth")), (("a", 5),), notes=("kept", Detail("why")))])[0].notes
        ('kept', 'depth, 1 more note hidden; show with --full (full=True)')
    """
    titles: list[str] = []  # omitted tables
    kept: list[Table | str] = []
    for part in parts:
        title = part.title if isinstance(part, Table) else part
        if not isinstance(title, Detail):
            kept.append(part)
        elif isinstance(part, Table):
            titles.append(title.partition(":")[0])
    tables = [part for part in kept if isinstance(part, Table)]
    notes = [note for table in tables for note in table.notes]
    warnings = list(dict.fromkeys(note for note in notes if "WARNING" in note))
    omitted = [note for note in notes if isinstance(note, Detail) or note in warnings[1:]]
    rows: dict[str, int] = {}  # numbers of omitted rows by noun; tables of the same unit show the same things
    shown: list[Table | str] = []
    for part in kept:
        if isinstance(part, str):
            shown.append(part)
            continue
        down = [place for place, row in enumerate(part.rows) if not any(isinstance(cell, Detail) for cell in row)]
        across = [place for place, name in enumerate(part.columns) if not isinstance(name, Detail)]
        rows[part.unit] = max(rows.get(part.unit, 0), len(part.rows) - len(down))
        short = part.part(rows=down, columns=across)
        own = tuple(note for note in part.notes if note not in omitted)
        shown.append(replace(short, shortened=short.shortened | short.abridged, notes=own))
    columns = [name for table in tables for name in table.columns if isinstance(name, Detail)]
    columns, titles = list(dict.fromkeys(columns)), list(dict.fromkeys(titles))
    counts = rows | {
        "column": len(columns[_NAMED:]),
        "table": len(titles[_NAMED:]),
        "warning": sum(note in warnings for note in omitted),
        "note": sum(note not in warnings for note in omitted),
    }
    names = [*columns[:_NAMED], *titles[:_NAMED], *(many(n, f"more {noun}") for noun, n in counts.items() if n)]
    if names:
        closing = f"{', '.join(filter(None, names))} hidden; show with --full (full=True)"
        last = shown[-1]
        if isinstance(last, Table):
            shown[-1] = replace(last, notes=(*last.notes, closing))
        else:
            shown.append(Table((), (), notes=(closing,)))
    return shown


def to_terminal(table: Table, *, color: bool = False) -> str:
    """Format for a terminal: wrapped to its width, without truncating numbers."""
    if table.starred and table.best:
        table = replace(table, notes=(_BEST, *table.notes))
    table, gap = _fitted(table.escaped(for_terminal))
    parts = (_lines(part, gap, color=color) for part in _split(table, gap))
    return "\n".join("".join(f"{line.rstrip()}\n" for line in lines) for lines in parts)


def _fitted(table: Table) -> tuple[Table, int]:
    """Return the table with texts cut or wrapped to fit its width, and the gap between columns."""
    widths = _widths(table)
    between = len(widths) - 1
    cut = set(table.shortened)
    long = {n for n, wide in enumerate(widths) if wide > _PROSE and not table.numeric(n)} - cut
    fitted = list(widths)
    if not table.width or not table.rows or sum(widths) + _GAPS[-1] * between <= table.width:
        chosen: tuple[tuple[set[int], int], ...] = ()
    else:
        chosen = (cut, _LEAST), (long, _PROSE)
    for columns, least in chosen:
        room = table.width - _GAPS[0] * between
        while sum(fitted) > room and max((fitted[n] for n in columns), default=0) > least:
            fitted[max(columns, key=fitted.__getitem__)] -= 1
    wide = (gap for gap in _GAPS if sum(fitted) + gap * between <= table.width)
    return _folded_cells(table, fitted, cut), next(wide, _GAPS[0])


def _widths(table: Table) -> list[int]:
    """Return the display width of each column."""
    widths = []
    for number, name in enumerate(table.columns):
        cells = table.marked(number) or [table.text(row[number]) for row in table.rows]
        widths.append(max(map(len, (name, *cells))))
    return widths


def _folded_cells(table: Table, widths: Sequence[int], cut: Collection[int]) -> Table:
    """Return the table with texts of these widths: truncated in some columns, wrapped in others."""
    rows: list[tuple[Cell, ...]] = []
    first: dict[int, int] = {}  # original row to first new row
    for place, row in enumerate(table.rows):
        first[place] = len(rows)
        columns: list[list[Cell]] = []
        for number, cell in enumerate(row):
            if not isinstance(cell, str) or len(cell) <= widths[number]:
                columns.append([cell])
            elif number in cut:
                columns.append([shorten(cell, widths[number])])
            else:
                lines = wrapped(cell, widths[number])
                columns.append([*lines])
        rows += itertools.zip_longest(*columns, fillvalue="")
    return replace(
        table,
        columns=tuple(
            shorten(name, widths[place], is_name=True) if place in cut else name
            for place, name in enumerate(table.columns)
        ),
        rows=tuple(rows),
        best=frozenset((first[row], column) for row, column in table.best if row in first),
        marks={(first[row], n): mark for (row, n), mark in table.marks.items() if row in first},
    )


def shorten(text: str, room: int, *, is_name: bool = False) -> str:
    """Return a text that fits: an id or name loses its middle, since they often differ at the end; a text its end."""
    if text_width(text) <= room:
        return text
    begin = room - 1 if " " in text and not is_name else room // 3
    end = text[begin + 1 - room :] if begin < room - 1 else ""
    while text_width(text[:begin] + end) > room - 1:
        begin, end = begin - 1, end[1:]
    return f"{text[:begin].rstrip()}…{end}"


def _split(table: Table, gap: int) -> list[Table]:
    """Return the table, or tables that fit the width, each beginning with the first columns."""
    widths = _widths(table)
    if not table.width or sum(widths) + gap * (len(widths) - 1) <= table.width:
        return [table]
    # Repeat the columns that distinguish the rows, at most two.
    first = 2 if len({row[:1] for row in table.rows}) < len({row[:2] for row in table.rows}) else 1
    groups = _groups(widths, first, gap, table.width)
    # Use the same number of tables, with about equal widths.
    narrower = (_groups(widths, first, gap, width) for width in range(max(widths), table.width))
    groups = next((even for even in narrower if len(even) == len(groups)), groups)
    parts = []
    for group in groups:
        part = table.part(columns=group)
        # Omit rows that only continue wrapped texts of another part.
        parts.append(part.part(rows=[n for n, row in enumerate(part.rows) if any(cell != "" for cell in row)]))
    heads = replace(table, rows=()) if len(parts) > 1 else table
    return [
        replace(
            part,
            title=heads.title if place == 0 else "",
            subtitle=heads.subtitle if place == 0 else "",
            notes=heads.notes if place == len(parts) - 1 else (),
        )
        for place, part in enumerate(parts)
    ]


def _groups(widths: Sequence[int], first: int, gap: int, width: int) -> list[list[int]]:
    """Return groups of columns that fit the width, each with the first columns."""
    groups = [[*range(first)]]
    for number in range(first, len(widths)):
        taken = sum(widths[n] + gap for n in groups[-1])
        if len(groups[-1]) > first and taken + widths[number] > width:
            groups.append([*range(first)])
        groups[-1].append(number)
    return groups


def wrapped(text: str, width: int = WIDTH, *, first: str = "", indent: str = "") -> list[str]:
    """Return a text as lines, the first one and the others with these indents; a word is never broken."""
    import textwrap

    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _folded(text: str, width: int, indent: str = "") -> str:
    return "\n".join(wrapped(text, width, indent=indent)) if 0 < width < len(text) else text


def _lines(table: Table, gap: int, *, color: bool) -> Iterator[str]:
    """Yield title, columns, and notes; in color, heads and best values are bold, and warnings yellow."""

    def styled(text: str, style: str = "1") -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if color and style else text

    yield from keep(
        table.title and styled(_folded(table.title, table.width)), table.subtitle and styled(table.subtitle)
    )
    columns = []
    for number, name in enumerate(table.columns):
        marked = table.marked(number)
        cells = [cell.rstrip() for cell in marked or (table.text(row[number]) for row in table.rows)]
        width = max(map(text_width, (name, *cells)))
        right = table.numeric(number)
        shown = [
            _padded(
                cell,
                styled(cell, "1" if (place, number) in table.best else _STYLES.get(cell, "")),
                width,
                right=right and not marked,
            )
            for place, cell in enumerate(cells)
        ]
        columns.append([_padded(name, styled(name), width, right=right), "─" * width, *shown])
    for place, line in enumerate(zip(*columns, strict=True)):
        yield (("─" if place == 1 else " ") * gap).join(line)
    if table.notes and table.columns:
        yield ""
    for note in table.notes:
        text = _folded(f"• {note}", table.width, indent="  ")
        yield styled(text, "1;33") if "WARNING" in note else text


def _padded(text: str, shown: str, width: int, *, right: bool) -> str:
    """Return a text as shown, with spaces that make it as wide as its column."""
    space = " " * (width - text_width(text))
    return space + shown if right else shown + space


def text_width(text: str) -> int:
    """Return the number of terminal cells of a text."""
    if all(c < "\u0300" or c in _NARROW for c in text):
        return len(text)
    from unicodedata import category, east_asian_width

    # Marks and format characters take no cell; wide and full-width characters take two.
    return sum(0 if category(c) in {"Mn", "Me", "Cf"} else 1 + (east_asian_width(c) in "WF") for c in text)


def to_markdown(table: Table) -> str:
    """Return a Markdown table, with columns also aligned in plain text."""
    table = table.escaped(for_markdown, _markdown_code)
    heads = table.columns
    body = [[_emphasised(table, place, number) for number in range(len(row))] for place, row in enumerate(table.rows)]
    widths = [max(3, *(len(row[n]) for row in [heads, *body])) for n in range(len(heads))]
    right = [table.numeric(number) for number in range(len(heads))]
    rules = ["-" * (w - 1) + (":" if r else "-") for w, r in zip(widths, right, strict=True)]
    lines = (
        [cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)]
        for row in (heads, rules, *body)
    )
    parts = keep(
        table.title and f"**{table.title}**",
        heads and "\n".join(f"| {' | '.join(cells)} |" for cells in lines),
        table.notes and "\n".join(f"- {note}" for note in table.notes),
    )
    return "\n\n".join(parts) + "\n"


def _markdown_code(text: str) -> str:
    """Return text as a code span, unless it is blank or contains a backtick."""
    plain = not text.strip() or "`" in text
    return for_markdown(text) if plain else "`" + for_terminal(text).replace("|", r"\|") + "`"


def _emphasised(table: Table, row: int, column: int) -> str:
    text = table.text(table.rows[row][column])
    bold = f"**{text}**" if (row, column) in table.best else text
    return bold + table.marks.get((row, column), "")


# LaTeX: print the table in smaller type if it is wider than the column, then scaled if it is larger than the page.
_FITTED = (
    "  \\sbox0{\\shown}%",
    "  \\ifdim\\wd0>\\linewidth\\sbox0{\\footnotesize\\setlength{\\tabcolsep}{3pt}\\shown}\\fi",
    "  \\ifdim\\dimexpr\\ht0+\\dp0\\relax>0.8\\textheight",
    "    \\sbox0{\\resizebox*{!}{0.8\\textheight}{\\usebox0}}%",
    "  \\fi",
    "  \\ifdim\\wd0>\\linewidth\\resizebox{\\linewidth}{!}{\\usebox0}\\else\\usebox0\\fi",
)


def to_latex(table: Table) -> str:
    r"""Return a LaTeX table: ``\usepackage{booktabs,graphicx}``.

    Best values are bold, marks are superscripts of zero width (so that decimals are aligned), and
    notes are one paragraph below. To fit one column of a two-column page, a wide table states cells that
    are equal in all rows in its caption; it is set in smaller type, and scaled if it is still wider
    than the column, or higher than most of the page. Every text is escaped; non-Latin characters
    need LuaLaTeX or XeLaTeX.
    """
    # A column of a two-column page has about 45 characters.
    if sum(_widths(table)) > 45 and len(table.rows) > 1:
        cells = dict(enumerate(map(set, zip(*table.rows, strict=True))))
        same = {n: cell for n, (cell, *more) in cells.items() if isinstance(cell, str) and not more}
        table = replace(
            table.part(columns=[n for n in cells if n not in same]),
            title="; ".join(keep(table.title, *(f"{table.columns[n]}: {cell}" for n, cell in same.items()))),
        )
    table = table.escaped(for_latex, _latex_code)
    notes = [f"    \\textbullet~{note}" for note in table.notes]
    below = "\n".join(["    {\\footnotesize\\raggedright", *notes, "    \\par}"])
    if not table.columns:
        lines = keep(table.title and f"\\noindent {table.title}\\par", notes and f"\\noindent\n{below}")
        return "\n".join(lines) + "\n"
    kinds = "".join("r" if table.numeric(n) else "l" for n in range(len(table.columns)))
    rows = [[_latex_cell(table, place, n) for n in range(len(row))] for place, row in enumerate(table.rows)]
    lines = keep(
        "\\begin{table}",
        "  \\centering",
        table.title and f"  \\caption{{{table.title}}}",
        f"  \\def\\shown{{\\begin{{tabular}}{{{kinds}}}",
        "    \\toprule",
        f"    {' & '.join(table.columns)} \\\\",
        "    \\midrule",
        *(f"    {' & '.join(cells)} \\\\" for cells in rows),
        "    \\bottomrule",
        "  \\end{tabular}}%",
        *_FITTED,
        notes and f"\n  \\smallskip\n{below}",
        "\\end{table}",
    )
    return "\n".join(lines) + "\n"


def _latex_code(text: str) -> str:
    return f"\\texttt{{{for_latex(text).replace(' ', '~')}}}" if text.strip() else ""


def _latex_cell(table: Table, row: int, column: int) -> str:
    cell = table.rows[row][column]
    # Texts are already escaped; this formats numbers and the sign for None.
    text = cell if isinstance(cell, str) else for_latex(table.text(cell))
    bold = f"\\textbf{{{text}}}" if (row, column) in table.best else text
    mark = table.marks.get((row, column), "")
    return bold + (f"\\rlap{{\\textsuperscript{{{mark}}}}}" if mark else "")


def to_csv(table: Table) -> str:
    """Return comma-separated values with a header: full precision, no formulas."""
    import csv

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    table = table.escaped(for_csv)
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow(["" if _is_nan(cell) else cell for cell in row])
    return out.getvalue()


def to_json(table: Table) -> str:
    """Return a JSON object with the rows, one object each, and the notes; NaN becomes null."""
    from importlib.metadata import version

    from rankgauge.core.escaping import dump_json

    head = {"schema": "rankgauge/result/1", "rankgauge": version("rankgauge"), "result": "Table"}
    return dump_json(head | {"rows": table.records(), "notes": table.notes}) + "\n"


_HTML = """\
{%- set left = ' style="text-align: left; font-family: monospace; white-space: pre"' | safe -%}
{%- if table.columns %}<table class="rankgauge">
{%- if table.title %}<caption style="text-align: left">{{ table.title }}</caption>{% endif %}
<thead><tr>
{%- for name in table.columns %}<th scope="col"
{%- if loop.index0 in table.fixed %}{{ left }}{% endif %}>{{ name }}</th>{% endfor -%}
</tr></thead>
<tbody>
{%- for row in table.rows %}{% set place = loop.index0 %}
<tr>
{%- for cell in row -%}
<td{% if table.numeric(loop.index0) %} style="text-align: right"
{%- elif loop.index0 in table.fixed %}{{ left }}{% endif %}>
{%- if (place, loop.index0) in table.best %}<strong>{{ table.text(cell) }}</strong>
{%- else %}{{ table.text(cell) }}{% endif -%}
{%- if (place, loop.index0) in table.marks %}<sup>{{ table.marks[place, loop.index0] }}</sup>
{%- endif -%}
</td>
{%- endfor -%}
</tr>
{%- endfor %}
</tbody>
</table>
{%- elif table.title %}<p>{{ table.title }}</p>
{%- endif %}
{%- if table.notes %}
<ul>{% for note in table.notes %}<li>{{ note }}</li>{% endfor %}</ul>
{%- endif %}
"""


def to_html(table: Table) -> str:
    """Return a table element with its notes; every text is escaped."""
    return _template().render(table=table) + "\n"


@functools.cache
def _template() -> Template:
    return templates().from_string(_HTML)


_RENDERERS: dict[str, Callable[[Table], str]] = {
    "markdown": to_markdown,
    "latex": to_latex,
    "html": to_html,
    "csv": to_csv,
    "json": to_json,
}


def render_table(table: Table, format: str, *, color: bool = False) -> str:
    """Return a table in the format, ending with a line feed."""
    return to_terminal(table, color=color) if format == "table" else _RENDERERS[format](table)
