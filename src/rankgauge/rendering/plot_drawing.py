"""Plots as data, and their drawing as SVG, PNG, or inline SVG.

A plot does not depend on measures: it has panels, and panels have series of numbers. It is drawn
with Matplotlib's object API, which leaves the pyplot state of a notebook unchanged. The same plot
gives the same bytes. Colors suit color-blind readers, and color is never the only distinction:
lines have markers and dashes, bars have hatches, and cells show their number.
"""

from __future__ import annotations

import io
import math
import os
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rankgauge.core.escaping import for_html, visible
from rankgauge.core.files import write_atomically
from rankgauge.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Shape: TypeAlias = Literal["bars", "columns", "intervals", "steps", "lines", "points", "scatter", "grid"]

# Okabe and Ito's palette without the two colors that are too light on white.
_SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8f6b00", "#6a51a3", "#4d4d4f")
_INK, _MUTED, _RULE, _SURFACE = "#1c1c21", "#5b5e66", "#d6d8de", "#fefefe"
# For lines only: scatter plots have thousands of points, all drawn as circles.
_HATCHES = ("", "////", "\\\\\\", "xxxx", "----", "||||", "++++", "//")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 3, 1, 3)))
# Inline plots use CSS variables for light and dark mode.
PAGE_COLORS = {
    **{color: f"var(--series-{number})" for number, color in enumerate(_SERIES, start=1)},
    _INK: "var(--ink)",
    _MUTED: "var(--muted)",
    _RULE: "var(--rule)",
    _SURFACE: "var(--surface)",
}
_WIDE = 9.0
_LONGEST = 36
_LONGEST_ALT = 2000
_STYLE = {
    "axes.prop_cycle": f"cycler('color', ['{_INK}'])",
    "axes.axisbelow": True,
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _MUTED,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titlecolor": _INK,
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": _RULE,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "savefig.facecolor": "auto",
    "svg.fonttype": "none",
    "svg.hashsalt": "rankgauge",
    "svg.image_inline": True,
    "text.color": _INK,
    "text.parse_math": False,
    "text.usetex": False,
    "xtick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "xtick.labelsize": 8.5,
    "ytick.color": _MUTED,
    "ytick.labelcolor": _INK,
    "ytick.labelsize": 8.5,
}
_TITLE: dict[str, Any] = {"size": 11, "weight": "bold"}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
# Matplotlib's settings are global: threads must not change them at the same time.
_DRAWING = threading.Lock()


@dataclass(frozen=True)
class Series:
    """A series of numbers in a plot.

    Attributes:
        name: Name in the legend.
        y: Values; NaN if missing.
        x: Positions of the values; default: 0, 1, 2, ...
        low: Lower bounds of intervals; may be empty.
        high: Upper bounds.
        texts: Text next to each value; may be empty. For ``steps``: names of the areas above and
            below zero.
    """

    name: str
    y: tuple[float, ...]
    x: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[float, ...]:
        """Positions of the values."""
        return self.x or tuple(range(len(self.y)))


@dataclass(frozen=True)
class Panel:
    """A pair of axes with series.

    Attributes:
        shape: ``bars`` (horizontal, with intervals), ``columns`` (vertical bars), ``intervals``
            (points with horizontal intervals), ``steps`` (filled area), ``lines``, ``points`` (with
            texts, and a step line through the first series), ``scatter`` (many markers, the last
            series on top), or ``grid`` (a row of cells for each series).
        series: Series to draw.
        title: Title, if the plot has several panels.
        across: Label of the horizontal axis.
        down: Label of the vertical axis.
        ticks: Tick labels at 0, 1, 2, ... (categories) or at the positions `at`.
        at: Positions of the ticks; default: 0, 1, 2, ...
        limits: Limits of the value axis; default: those of the data.
        marks: Positions of dashed lines across the ``intervals``.
        log: Whether the horizontal axis is logarithmic.
    """

    shape: Shape
    series: tuple[Series, ...]
    title: str = ""
    across: str = ""
    down: str = ""
    ticks: tuple[str, ...] = ()
    at: tuple[float, ...] = ()
    limits: tuple[float, float] | None = None
    marks: tuple[float, ...] = ()
    log: bool = False


@dataclass(frozen=True, repr=False)
class Plot:
    """A plot, drawn on display. Notebooks display it.

    Attributes:
        kind: One word for the kind of plot.
        title: Title.
        alt: Alternative text of the plot.
        panels: One or more panels.
        caption: Caption that explains the plot.

    Example:
        >>> line = Panel("lines", (Series("bm25", (0.2, 0.4)),), across="k")
        >>> Plot("cutoffs", "Recall", "Recall rises with k", (line,)).svg()[:5]
        '<?xml'
    """

    kind: str
    title: str
    alt: str
    panels: tuple[Panel, ...]
    caption: str = ""

    def svg(self) -> str:
        """Return the plot as an SVG file with a white background.

        Raises:
            MissingExtra: If matplotlib is not installed.
        """
        return _drawn(self, titled=True, format="svg", metadata=_NO_METADATA).decode()

    def inline(self, name: str) -> str:
        """Return the plot as an element for an HTML page, without its title.

        It has no background and uses the colors (`PAGE_COLORS`) and the font of the page.

        Args:
            name: Name that is unique within the page, used as a prefix of ids.

        Raises:
            MissingExtra: If matplotlib is not installed.
        """
        svg = _drawn(self, titled=False, format="svg", metadata=_NO_METADATA, transparent=True)
        return _inlined(svg.decode(), name, self.alt)

    def png(self, *, dpi: int = 150) -> bytes:
        """Return the plot as a PNG file with a white background.

        Raises:
            MissingExtra: If matplotlib is not installed.
        """
        return _drawn(self, titled=True, format="png", dpi=dpi, metadata={"Software": None})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plot to a file: ``.svg`` or ``.png``.

        Raises:
            InputError: For another extension, or if the file cannot be written.
            MissingExtra: If matplotlib is not installed.
        """
        target = Path(path)
        match target.suffix.lower():
            case ".svg":
                content = self.svg().encode()
            case ".png":
                content = self.png()
            case other:
                raise InputError(
                    f"got {other!r}, expected the extension .svg or .png",
                    where=str(path),
                    fix="use a name that ends in .svg or .png",
                )
        with write_atomically(target) as stream:
            stream.write(content)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<Plot {self.kind!r}: {self.title}>"


@contextmanager
def _settings() -> Iterator[None]:
    """Apply only our Matplotlib settings inside the block."""
    try:
        from matplotlib import style
    except ImportError:
        raise MissingExtra(
            "matplotlib is not installed, which plots need", fix="pip install 'rankgauge[plots]'"
        ) from None
    with _DRAWING, warnings.catch_warnings():
        # Missing glyphs become boxes in PNG files but stay letters in SVG files: ignore the
        # warning.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        with style.context(["default", _STYLE]):
            yield


def _drawn(plot: Plot, *, titled: bool, **options: Any) -> bytes:
    """Return the file of a plot, with options of Matplotlib's ``savefig``."""
    out = io.BytesIO()
    with _settings():
        _figure(plot, titled=titled).savefig(out, **options)
    return out.getvalue()


def _inlined(svg: str, name: str, alt: str) -> str:
    """Convert an SVG file to an element that does not affect the rest of a page."""
    body = svg[svg.index("<svg") :].rstrip()
    body = re.sub(r"(?s)<metadata>.*?</metadata>\s*", "", body)
    # CSS rules with a universal selector would apply to the whole page.
    body = re.sub(r"(?s)\s*<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', body))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{name}-{match[1]}"' if match[1] in used else ""

    body = re.sub(r' id="([^"]*)"', renamed, body)
    body = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", body)
    for color, variable in PAGE_COLORS.items():
        body = body.replace(color, variable)
    body = re.sub(r"'DejaVu Sans'(, [^;\"]*)?", "var(--sans)", body)
    # Two decimals of a point are finer than any screen.
    body = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda at: re.sub(r"(\.\d\d)\d+", r"\1", at[0]), body)
    body = re.sub(r"\n\s*", "\n", body)
    view = re.search(r'viewBox="[^"]*"', body)
    label = for_html(_shown(alt, _LONGEST_ALT))
    head = (
        f'<svg class="plot" role="img" aria-label="{label}" {view[0] if view else ""} '
        'stroke-linejoin="round" xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return head + body[body.index(">") + 1 :]


# ---- drawing


def _figure(plot: Plot, *, titled: bool) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(2, len(plot.panels))
    rows = -(-len(plot.panels) // columns)
    high = max(map(_height, plot.panels)) * rows
    names = _legend(plot)
    fit = max(1, 110 // (max(map(len, names), default=0) + 9))  # names in a row of the legend
    figure = Figure(
        figsize=(_WIDE, high + 0.3 * titled + 0.22 * -(-len(names) // fit)),
        facecolor=_SURFACE,
        layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06),
    )
    for place, panel in enumerate(plot.panels, start=1):
        axes = figure.add_subplot(rows, columns, place, facecolor="none")
        _DRAW[panel.shape](axes, panel)
        if len(plot.panels) > 1:
            axes.set_title(_shown(panel.title, 60))
        axes.set_xlabel(_shown(panel.across, 80))
        axes.set_ylabel(_shown(panel.down, 60))
    title = _shown(plot.title, 90) if titled else ""
    if names:
        handles = [_handle(plot.panels[0].shape, number) for number in range(len(names))]
        # One block for title and legend, so that they cannot overlap.
        block = figure.legend(
            handles,
            ["-"] * len(names),
            loc="outside upper left",
            ncols=min(fit, len(names)),
            handlelength=3,
            columnspacing=2,
            borderaxespad=0.3,
            alignment="left",
            title=title or None,
            title_fontproperties=_TITLE,
        )
        # Set afterwards: Matplotlib ignores labels that begin with an underscore.
        for text, name in zip(block.get_texts(), names, strict=True):
            text.set_text(name)
    elif title:
        figure.suptitle(title, x=0.01, ha="left", **_TITLE)
    return figure


def _height(panel: Panel) -> float:
    """Return the height in inches; horizontal kinds grow with the number of ticks."""
    lines, series = len(panel.ticks), len(panel.series)
    heights = {
        "bars": 0.55 + 0.1 * lines + 0.17 * lines * series,
        "intervals": 0.65 + 0.28 * lines,
        "grid": 0.95 + 0.3 * series,
        "scatter": 5.2,
    }
    return heights.get(panel.shape, 2.9)


def _legend(plot: Plot) -> list[str]:
    """Return the names of the legend; none for a single series."""
    first = plot.panels[0]
    if first.shape in {"grid", "intervals", "steps"} or len(first.series) < 2:
        return []
    return [_shown(series.name, _LONGEST) or "(no name)" for series in first.series]


def _handle(shape: Shape, number: int) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    look = {"lines": _line, "points": _point, "scatter": _mark}.get(shape)
    return Line2D([], [], **look(number)) if look else Patch(**_fill(number))


def _line(number: int) -> dict[str, Any]:
    turn = number % len(_SERIES)
    return {
        "color": _SERIES[turn],
        "linestyle": _DASHES[turn],
        "marker": _MARKERS[turn],
        "markeredgecolor": _SURFACE,
        "markeredgewidth": 0.6,
    }


def _fill(number: int) -> dict[str, Any]:
    turn = number % len(_SERIES)
    return {"facecolor": _SERIES[turn], "hatch": _HATCHES[turn], "edgecolor": _SURFACE, "linewidth": 0.6}


def _shown(text: str, most: int) -> str:
    """Return a printable text on one line, truncated to `most` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def _errors(series: Series) -> list[list[float]] | None:
    """Return the distances from each value to its interval bounds; None without intervals."""
    if not series.low:
        return None
    ends = zip(series.y, series.low, series.high, strict=True)
    pairs = [(max(0.0, y - low), max(0.0, high - y)) for y, low, high in ends]
    return [[below for below, _ in pairs], [above for _, above in pairs]]


def _bars(axes: Axes, panel: Panel) -> None:
    """Draw horizontal bars grouped by tick, with the value after the interval."""
    thick = 0.8 / len(panel.series)
    for number, series in enumerate(panel.series):
        at = [place - 0.4 + thick * (number + 0.5) for place in series.places]
        axes.barh(at, series.y, height=thick, **_fill(number))
        errors = _errors(series)
        if errors:
            axes.errorbar(series.y, at, xerr=errors, fmt="none", ecolor=_INK, elinewidth=1, capsize=2.5)
        ends = series.high or series.y
        for place, y, end, text in zip(at, series.y, ends, series.texts, strict=False):
            far = max(v for v in (0.0, y, end) if v == v)  # noqa: PLR0124 - no NaN
            axes.annotate(
                text, (far, place), xytext=(5, 0), textcoords="offset points", va="center_baseline", fontsize=8
            )
    _categories_down(axes, panel)
    axes.axvline(0, color=_MUTED, linewidth=0.8)
    if panel.limits:
        axes.set_xlim(*panel.limits)
    else:
        axes.margins(x=0.12)


def _intervals(axes: Axes, panel: Panel) -> None:
    """Draw points with horizontal intervals, and a line at zero."""
    for number, series in enumerate(panel.series):
        axes.errorbar(
            series.y,
            series.places,
            xerr=_errors(series),
            fmt=_MARKERS[number % len(_MARKERS)],
            color=_SERIES[number % len(_SERIES)],
            elinewidth=1.6,
            capsize=3.5,
            markersize=5.5,
        )
        for place, text in zip(series.places, series.texts, strict=False):
            axes.annotate(
                _shown(text, 40),
                (1.01, place),
                xycoords=("axes fraction", "data"),
                fontsize=8,
                va="center_baseline",
                annotation_clip=False,
            )
    _categories_down(axes, panel)
    axes.axvline(0, color=_INK, linewidth=0.9)
    for mark in panel.marks:
        axes.axvline(mark, color=_INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.margins(x=0.06)


def _categories_down(axes: Axes, panel: Panel) -> None:
    axes.set_yticks(range(len(panel.ticks)), [_shown(tick, _LONGEST) for tick in panel.ticks])
    axes.set_ylim(len(panel.ticks) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")


def _columns(axes: Axes, panel: Panel) -> None:
    """Draw vertical bars grouped by tick, with the number above each bar."""
    from matplotlib.ticker import MaxNLocator

    wide = 0.8 / len(panel.series)
    for number, series in enumerate(panel.series):
        at = [place - 0.4 + wide * (number + 0.5) for place in series.places]
        axes.bar(at, series.y, width=wide, **_fill(number))
        for place, y, text in zip(at, series.y, series.texts, strict=False):
            axes.annotate(text, (place, y), xytext=(0, 2.5), textcoords="offset points", ha="center", fontsize=7.5)
    axes.set_xticks(range(len(panel.ticks)), [_shown(tick, 14) for tick in panel.ticks])
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")
    axes.margins(x=0.02, y=0.12)


def _steps(axes: Axes, panel: Panel) -> None:
    """Draw an area above and below zero in two colors, the second one hatched."""
    for series in panel.series:
        edges = [place - 0.5 for place in range(len(series.y) + 1)]
        for number, side in enumerate((max, min)):
            part = [side(0.0, y) for y in series.y]
            if any(part):
                axes.stairs(part, edges, fill=True, **(_fill(number) | {"linewidth": 0}))
        axes.set_xlim(-0.5, len(series.y) - 0.5)
        if series.texts:
            # Sorted values descend: the upper right is always free.
            axes.legend([_handle("steps", 0), _handle("steps", 1)], series.texts, loc="upper right")
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.axhline(0, color=_INK, linewidth=0.9)
    axes.grid(axis="y")
    if panel.limits:
        axes.set_ylim(*panel.limits)


def _lines(axes: Axes, panel: Panel) -> None:
    """Draw a line for each series, with a band if there are intervals."""
    for number, series in enumerate(panel.series):
        axes.plot(series.places, series.y, **_line(number))
        if series.low:
            axes.fill_between(
                series.places, series.low, series.high, color=_SERIES[number % len(_SERIES)], alpha=0.16, linewidth=0
            )
            # A band is invisible at an isolated value.
            alone = _isolated(series)
            axes.vlines(
                [series.places[n] for n in alone],
                [series.low[n] for n in alone],
                [series.high[n] for n in alone],
                color=_SERIES[number % len(_SERIES)],
                alpha=0.4,
                linewidth=4,
            )
    if panel.log:
        axes.set_xscale("log")
    if panel.ticks:
        places: Sequence[float] = panel.at or range(len(panel.ticks))
        axes.set_xticks(places, [_shown(tick, 14) for tick in panel.ticks])
        axes.set_xticks([], minor=True)
        if max(map(len, panel.ticks)) > 5:
            axes.tick_params(axis="x", rotation=30)
            for label in axes.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
    axes.grid(visible=True)
    if panel.limits:
        axes.set_ylim(*panel.limits)


def _points(axes: Axes, panel: Panel) -> None:
    """Draw a marker with text for each value, and a step line through the first series."""
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    for number, series in enumerate(panel.series):
        axes.plot(series.places, series.y, **_point(number))
        for x, y, text in zip(series.places, series.y, series.texts, strict=False):
            axes.annotate(
                _shown(text, _LONGEST),
                (x, y),
                xytext=(5, -10),
                textcoords="offset points",
                fontsize=7.5,
                color=_MUTED if number else _INK,
            )
    if panel.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True)
    axes.margins(x=0.12, y=0.15)


def _point(number: int) -> dict[str, Any]:
    look = {"linestyle": ""} if number else {"drawstyle": "steps-post", "linewidth": 1.0}
    return _line(number) | look


def _scatter(axes: Axes, panel: Panel) -> None:
    """Draw a marker for each pair of values, with a different marker for each series."""
    for number, series in enumerate(panel.series):
        axes.plot(series.places, series.y, **_mark(number))
    axes.set_xticks([])
    axes.set_yticks([])


def _mark(number: int) -> dict[str, Any]:
    filled = {"alpha": 0.45, "markersize": 3.5} if not number else {"markersize": 5}
    return _line(number) | {"linestyle": ""} | filled


def _isolated(series: Series) -> list[int]:
    """Return the positions of values without a line to either side."""
    known = [False, *(math.isfinite(y) for y in series.y), False]
    return [place for place in range(len(series.y)) if known[place + 1] and not known[place] and not known[place + 2]]


def _grid(axes: Axes, panel: Panel) -> None:
    """Draw a row of cells for each series, shaded by value, with the value as text."""
    from matplotlib.patches import Rectangle

    known = [y for series in panel.series for y in series.y if y == y]  # noqa: PLR0124 - no NaN
    size = 7 if len(panel.ticks) <= 30 else 6.2
    low, high = panel.limits or (min(known, default=0.0), max(known, default=1.0))
    for row, series in enumerate(panel.series):
        for place, y, text in zip(series.places, series.y, series.texts, strict=True):
            share = min(1.0, max(0.0, (y - low) / (high - low or 1))) if y == y else 0.0  # noqa: PLR0124
            cell = Rectangle(
                (place - 0.5, row - 0.5),
                1,
                1,
                facecolor=(_SERIES[0], 0.04 + 0.5 * share),
                edgecolor=_SURFACE,
                linewidth=1.2,
            )
            axes.add_patch(cell)
            axes.annotate(text, (place, row), ha="center", va="center_baseline", fontsize=size)
    axes.set_xlim(-0.5, len(panel.ticks) - 0.5)
    axes.set_ylim(len(panel.series) - 0.5, -0.5)
    names = [_shown(series.name, 24) for series in panel.series]
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(range(len(panel.ticks)), [_shown(tick, 14) for tick in panel.ticks])
    turned = max(map(len, panel.ticks), default=0) * len(panel.ticks) > 90
    axes.tick_params(axis="both", length=0)
    axes.tick_params(axis="x", rotation=90 if turned else 0, labelsize=7.5)
    axes.spines[:].set_visible(False)


_DRAW = {
    "bars": _bars,
    "columns": _columns,
    "intervals": _intervals,
    "steps": _steps,
    "lines": _lines,
    "points": _points,
    "scatter": _scatter,
    "grid": _grid,
}
