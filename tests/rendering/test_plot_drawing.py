"""Plots and their output formats: content, determinism, and no remaining state."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import rankgauge
from rankgauge import InputError
from rankgauge.rendering.plot_drawing import PAGE_COLORS, Panel, Plot, Series

NAN = float("nan")
TWO = (Series("bm25", (0.25, 0.5)), Series("dense", (0.5, NAN)))
PANELS = {
    "bars": Panel(
        "bars", (Series("a", (0.5, NAN), low=(0.25, NAN), high=(0.75, NAN), texts=("0.500", "–")),), ticks=("RR", "AP")
    ),
    "columns": Panel("columns", tuple(replace(s, texts=("1", "2")) for s in TWO), ticks=("1", "none")),
    "intervals": Panel(
        "intervals",
        (Series("d", (-0.25, 0.5), low=(-0.5, 0.25), high=(0.0, 0.75), texts=("worse", "")),),
        ticks=("RR", "AP"),
    ),
    "steps": Panel("steps", (Series("d", (0.5, 0.0, -0.25), texts=("up", "down")),)),
    "lines": Panel("lines", TWO, ticks=("1", "10"), at=(1, 10)),
    "grid": Panel("grid", tuple(replace(s, texts=(".2", "–")) for s in TWO), ticks=("q1", "q2")),
}


def plot(shape="lines", **changes):
    return Plot(shape, "a title", "what is seen", (replace(PANELS[shape], **changes),))


def words(svg):
    return [element.text for element in ET.fromstring(svg).iter() if element.tag.endswith("}text")]


@pytest.mark.parametrize("shape", PANELS)
def test_the_same_plot_gives_the_same_bytes_and_no_date(shape):
    svg = plot(shape).svg()
    assert svg == plot(shape).svg()
    assert not re.search(r"(?i)<dc:date|20[0-9]{2}-", svg)


def test_the_same_plot_gives_the_same_pixels():
    shape = next(iter(PANELS))
    assert plot(shape).png(dpi=40) == plot(shape).png(dpi=40)


@pytest.mark.parametrize("shape", PANELS)
def test_letters_stay_letters(shape):
    shown = words(plot(shape).svg())
    assert "a title" in shown
    for tick in PANELS[shape].ticks:
        assert tick in shown
    for series in PANELS[shape].series:
        for text in filter(None, series.texts):
            assert text in shown


def test_bars_and_points_are_at_their_values():
    """Read from the paths: the second bar is twice as long as the first."""
    panel = Panel("bars", (Series("a", (0.25, 0.5)),), ticks=("x", "y"), limits=(0.0, 1.0))
    svg = Plot("bars", "t", "a", (panel,)).svg()
    bars = re.findall(r'<path d="([^"]*)"[^>]*style="fill: #0072b2', svg)
    widths = []
    for path in bars:
        across = [float(x) for x in re.findall(r"[ML] (\S+) \S+", path)]
        widths.append(max(across) - min(across))
    assert len(widths) == 2
    assert widths[1] == pytest.approx(2 * widths[0], abs=1e-3)


@pytest.mark.parametrize("shape", PANELS)
def test_on_a_page_colours_are_variables_and_nothing_leaks(shape):
    element = plot(shape).inline("fig-1")
    ET.fromstring(element)
    assert not re.search("#[0-9a-f]{6}", element)
    assert set(re.findall(r"var\(--[\w-]+\)", element)) <= {*PAGE_COLORS.values(), "var(--sans)"}
    assert "<style" not in element
    assert "DejaVu" not in element
    assert 'aria-label="what is seen"' in element
    assert "a title" not in element
    ids = re.findall(r' id="([^"]*)"', element)
    assert all(name.startswith("fig-1-") for name in ids)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(#|href="#)([^")]+)', element)
    assert set(used) == set(ids)


def test_no_information_is_given_by_colour_alone():
    lines = plot("lines").svg()
    assert "stroke-dasharray" in lines
    assert len(set(re.findall(r'<use xlink:href="(#m\w+)"', lines))) > 2  # markers differ
    assert "<pattern" in plot("columns").svg()


def test_no_text_is_a_command_of_svg_or_of_mathematics():
    evil = '</text><script>alert("1")</script> $\\frac$ \u202e\x00 & _x'
    series = tuple(replace(s, name=f"_{n}{evil}") for n, s in enumerate(TWO))
    shown = Plot("lines", evil, evil, (Panel("lines", series, across=evil, ticks=(evil,), at=(0,)),))
    for svg in (shown.svg(), shown.inline("x")):
        root = ET.fromstring(svg)
        assert not [e for e in root.iter() if e.tag.endswith("script")]
        assert "\x00" not in svg
    assert any("$\\frac$" in text for text in words(shown.svg()))
    assert any(text.startswith("_1</text>") for text in words(shown.svg()))


def test_the_settings_of_a_notebook_change_nothing_and_are_not_changed():
    matplotlib = pytest.importorskip("matplotlib")
    before = plot().svg()
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 20, "svg.fonttype": "path"}):
        kept = dict(matplotlib.rcParams)
        assert plot().svg() == before
        assert dict(matplotlib.rcParams) == kept


def test_pyplot_is_never_loaded():
    code = (
        "import sys; from rankgauge.rendering.plot_drawing import *\n"
        "Plot('l', 't', 'a', (Panel('lines', (Series('x', (1.0, 2.0)),)),)).svg()\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_line_that_installs_it_is_shown(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError\n", encoding="utf-8")
    code = (
        "import rankgauge\n"
        "ev = rankgauge.evaluate({'q': {'d'}, 'p': {'d'}}, {'q': ['d']}, 'RR')\n"
        "try: ev.plot().svg()\n"
        "except rankgauge.MissingExtra as error: print(error)\n"
    )
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert "pip install 'rankgauge[plots]'" in done.stdout


def test_a_plot_is_written_as_its_name_says(tmp_path):
    plot().save(tmp_path / "a.svg")
    plot().save(str(tmp_path / "a.PNG"))
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == plot().svg()
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"got '.gif', expected the extension .svg or .png"):
        plot().save(tmp_path / "a.gif")
    with pytest.raises(InputError, match="cannot be written"):
        plot().save(tmp_path / "none" / "a.svg")


def test_a_plot_shows_itself_in_a_notebook():
    assert plot()._repr_svg_() == plot().svg()
    assert repr(plot()) == "<Plot 'lines': a title>"
    assert rankgauge.rendering.Plot is Plot
