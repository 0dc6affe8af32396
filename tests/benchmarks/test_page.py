"""Benchmark tables, and writing them into pages."""

import pytest
from page import number, put, table

PAGE = """# Speed

<!-- table: dicts -->
<!-- end -->

prose

<!-- table: files -->
old
<!-- end -->
"""


def test_numbers_are_right_aligned():
    assert table(("work", "engine", "ms"), [("S", "ours", "1")], words=2) == (
        "| work | engine | ms |\n| --- | --- | ---: |\n| S | ours | 1 |"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (0.01234, "0.012"),
        (0.1234, "0.12"),
        (0.9999, "1.00"),
        (1.234, "1.23"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (12.34, "12.3"),
        (99.96, "100"),
        (1234.5, "1,234"),
    ],
    ids=str,
)
def test_numbers_are_shown_with_two_or_three_figures(value, shown):
    assert number(value) == shown


def test_a_table_is_written_only_between_its_markers(tmp_path):
    page = tmp_path / "speed.md"
    page.write_text(PAGE)
    put(page, "files", r"new \1")
    assert page.read_text() == PAGE.replace("old", "\nnew \\1\n")
    put(page, "files", "newer")
    assert page.read_text() == PAGE.replace("old", "\nnewer\n")


@pytest.mark.parametrize(("text", "times"), [("# Speed\n", 0), (PAGE + PAGE, 2)], ids=["none", "two"])
def test_a_page_without_one_pair_of_markers_is_an_error(text, times, tmp_path):
    page = tmp_path / "speed.md"
    page.write_text(text)
    with pytest.raises(ValueError, match=f"found {times}"):
        put(page, "dicts", "new")
    assert page.read_text() == text
