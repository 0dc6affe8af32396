"""Tables and their output formats."""

import csv
import io
import json
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from rankgauge.rendering.tables import (
    Table,
    render_table,
    shorten,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    to_terminal,
)

TABLE = Table(
    columns=("run", "nDCG@10", "NumRet"),
    rows=(("a|b", 0.5, 10), ("<i>", math.nan, 7)),
    title="two runs",
    notes=("first note",),
    best=frozenset({(0, 1)}),
)


def test_columns_beyond_the_width_continue_below_and_no_number_is_cut():
    wide = Table(
        columns=("run", *(f"measure number {n}" for n in range(40))),
        rows=(("a", *(n / 7 for n in range(40))),),
        best=frozenset({(0, 40)}),
        marks={(0, 39): "†"},
        starred=True,
        title="many measures",
        notes=("a note",),
    )
    printed = to_terminal(wide)
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(f"{n / 7:.4f}" in printed for n in range(40))
    assert sum(line.startswith("run ") for line in lines) == sum(line[:2] == "a " for line in lines)
    assert (lines[0], lines[-1], printed.count("many measures")) == (wide.title, "• a note", 1)
    assert "5.4286†" in printed
    assert "5.5714*" in printed
    assert (printed.count("*"), printed.count("†")) == (2, 1)  # with the note on the star
    assert len(to_terminal(replace(wide, width=0)).splitlines()) == 7


def test_long_texts_in_cells_are_folded_at_spaces():
    said = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    table = Table(
        ("query", "what", "value"), (("q1", said, 0.5), ("q2", "short", 0.25)), best=frozenset({(1, 2)}), starred=True
    )
    lines = to_terminal(table).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].endswith("0.5000")
    assert (lines[3][:5], lines[4].endswith("0.2500*")) == ("     ", True)
    assert f"{lines[2][5:-6].strip()} {lines[3].strip()}" == said
    assert said in to_terminal(replace(table, width=0))


def test_a_terminal_table_has_no_colour_unless_asked():
    assert "\x1b" not in to_terminal(TABLE)
    assert "\x1b[1m0.5000\x1b[0m" in to_terminal(TABLE, color=True)


LETTERS = st.text("aB1- é–−†²→…日🙂\u0301\t\n[]\\\xa0", max_size=6)
CELLS = st.one_of(LETTERS, st.none(), st.integers(-9, 10**6), st.floats(-9, 999), st.just(float("nan")))


@st.composite
def tables(draw):
    names = draw(st.lists(LETTERS, min_size=1, max_size=4))
    kinds = [draw(st.sampled_from([CELLS, st.floats(0, 1)])) for _ in names]
    rows = draw(st.lists(st.tuples(*kinds), max_size=4))
    places = st.sampled_from([(r, c) for r in range(len(rows) or 1) for c in range(len(names))])
    return Table(
        tuple(names),
        tuple(rows),
        draw(LETTERS),
        tuple(draw(st.lists(LETTERS, max_size=2))),
        best=draw(st.frozensets(places)),
        starred=draw(st.booleans()),
        marks=draw(st.dictionaries(places, st.sampled_from(["†", "a", "‡ab"]), max_size=3)),
        right=draw(st.frozensets(st.sampled_from(range(len(names))), max_size=1)),
        width=draw(st.sampled_from([80, 30, 12, 0])),
    )


@given(tables())
def test_colors_change_no_letter_of_a_table(table):
    plain = re.sub("\x1b\\[[0-9;]*m", "", to_terminal(table, color=True))
    assert to_terminal(table).splitlines() == [line.rstrip() for line in plain.splitlines()]


def test_letters_of_two_cells_keep_their_columns_in_line():
    table = Table(columns=("run", "AP"), rows=(("日本", 0.5), ("a", 0.25)))
    assert to_terminal(table).splitlines()[2:] == ["日本   0.5000", "a      0.2500"]


def test_spaces_behind_a_number_do_not_move_it():
    table = Table(columns=("n",), rows=(("1 ",), ("1000",)), right=frozenset({0}))
    assert to_terminal(table).splitlines()[2:] == ["   1", "1000"]


def test_markdown_escapes_what_would_break_it():
    text = to_markdown(TABLE)
    assert "a\\|b" in text
    assert "\\<i>" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(line) for line in rows}) == 1


def test_csv_keeps_every_digit_and_defuses_formulas():
    table = Table(columns=("=cmd", "x"), rows=(("+1", 0.1 + 0.2), ("ok", None)))
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows == [["'=cmd", "x"], ["'+1", "0.30000000000000004"], ["ok", ""]]


def test_json_has_no_nan():
    data = json.loads(render_table(TABLE, "json"), parse_constant=pytest.fail)
    assert data["rows"][1] == {"run": "<i>", "nDCG@10": None, "NumRet": 7}


def test_html_escapes_text_and_marks_the_best():
    page = to_html(TABLE)
    assert "&lt;i&gt;" in page
    assert "<i>" not in page
    assert "<strong>0.5000</strong>" in page
    assert "<li>first note</li>" in page


def test_latex_has_the_rules_of_booktabs_and_the_best_in_bold():
    lines = [line.strip() for line in render_table(TABLE, "latex").splitlines()]
    assert lines == [
        r"\begin{table}",
        r"\centering",
        r"\caption{two runs}",
        r"\def\shown{\begin{tabular}{lrr}",
        r"\toprule",
        r"run & nDCG@10 & NumRet \\",
        r"\midrule",
        r"a\textbar{}b & \textbf{0.5000} & 10 \\",
        r"\textless{}i\textgreater{} & -- & 7 \\",
        r"\bottomrule",
        r"\end{tabular}}%",
        r"\sbox0{\shown}%",
        r"\ifdim\wd0>\linewidth\sbox0{\footnotesize\setlength{\tabcolsep}{3pt}\shown}\fi",
        r"\ifdim\dimexpr\ht0+\dp0\relax>0.8\textheight",
        r"\sbox0{\resizebox*{!}{0.8\textheight}{\usebox0}}%",
        r"\fi",
        r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
        "",
        r"\smallskip",
        r"{\footnotesize\raggedright",
        r"\textbullet~first note",
        r"\par}",
        r"\end{table}",
    ]


def test_a_wide_latex_table_states_equal_cells_in_its_caption():
    columns = ("run", "measure", "difference", "interval", "verdict", "remark")
    rows = tuple(("bm25", f"nDCG@{k}", "+0.1", "0.05 to 0.15 of all", "better", "of 30 queries") for k in (5, 10))
    text = render_table(Table(columns, rows, title="compared with a"), "latex")
    assert r"\caption{compared with a; run: bm25; difference: +0.1" in text
    assert [line.strip() for line in text.splitlines() if "nDCG" in line] == [r"nDCG@5 \\", r"nDCG@10 \\"]
    # A narrow one, and one of a single row, keep all columns.
    assert "run & measure" in render_table(Table(columns, rows[:1]), "latex")
    assert "run & x" in render_table(Table(("run", "x"), (("a", "b"), ("a", "c"))), "latex")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("50 % & $5 #1 a_b ~ ^", r"50 \% \& \$5 \#1 a\_b \textasciitilde{} \textasciicircum{}"),
        # After the end of a row, a star or bracket would be read as its argument.
        ("*", "{*}"),
        ("[2ex]", "{[}2ex]"),
        # No ligature joins two dashes, and a minus sign is not a hyphen.
        ("--option", "-{}-option"),
        ("-0.163 to +0.070", "$-$0.163 to +0.070"),
        ("Δ ↑ → ± ·", r"$\Delta$ $\uparrow$ $\to$ $\pm$ $\cdot$"),
        ("bm25-1 on 2024-01-02", "bm25-1 on 2024-01-02"),
        ("\u202eevil\n", r"\textbackslash{}u202eevil\textbackslash{}n"),
    ],
)
def test_no_text_is_a_command_of_latex(text, escaped):
    row = to_latex(Table(columns=("a",), rows=((text,),))).splitlines()[6]
    assert row == rf"    {escaped} \\"


def test_marks_follow_a_cell_and_decimals_are_aligned():
    marked = replace(TABLE, rows=(("a", 0.5, 10), ("b", 0.25, 7)), marks={(1, 1): "*"})
    assert r"\textbf{0.5000} & 10" in to_latex(marked)
    assert r"0.2500\rlap{\textsuperscript{{*}}} & 7" in to_latex(marked)
    rows = [line for line in to_terminal(marked).splitlines() if "0." in line]
    assert [row.index(".") for row in rows] == [rows[0].index(".")] * 2
    assert "0.2500*" in rows[1]
    assert "| **0.5000** |" in to_markdown(marked)
    assert "0.2500\\*" in to_markdown(marked)
    assert "0.2500<sup>*</sup>" in to_html(marked)
    assert "*" not in to_csv(marked) + render_table(marked, "json")


def test_numbers_of_different_length_keep_their_decimals_in_line_beside_marks():
    table = Table(
        ("run", "x"),
        (("a", 10.5), ("b", 2.25), ("c", 123.0)),
        best=frozenset({(1, 1)}),
        starred=True,
        marks={(0, 1): "†"},
    )
    lines = to_terminal(table).splitlines()[2:5]
    assert [line.split()[1] for line in lines] == ["10.5000†", "2.2500*", "123.0000"]
    assert len({line.index(".") for line in lines}) == 1


def test_every_space_of_a_fixed_column_counts():
    plot = Table(("run", "0    1"), (("a", "  |o|"), ("b", "|`o`"), ("c", "")), fixed=frozenset({1}))
    page = to_html(plot)
    assert page.count("white-space: pre") == 4
    assert ">  |o|</td>" in page
    assert r"| `  \|o\|` |" in to_markdown(plot)
    assert r"| \|\`o\` " in to_markdown(plot)
    assert r"\texttt{~~\textbar{}o\textbar{}}" in to_latex(plot)
    assert plot.part(columns=[1]).fixed == {0}
    assert "white-space" not in to_html(plot.part(columns=[0]))


def test_a_name_with_spaces_keeps_its_end():
    assert shorten("all queries of bm25.run", 11, is_name=True) == "all…m25.run"
    assert shorten("all queries of bm25.run", 11) == "all querie…"
