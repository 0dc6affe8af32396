import command
import pytest

from rankgauge.distributed import sql_checks, sql_query

pytest.importorskip("sqlglot", reason="without sqlglot no query is written")


def printed(*arguments):
    return command.run("sql", *arguments)


def test_prints_the_query_and_nothing_else():
    options = ("--run", "logs.run", "--column", "grade=relevance")
    expected = {"run": "logs.run", "columns": {"grade": "relevance"}}
    assert printed("AP", *options).stdout == sql_query("AP", **expected) + ";\n"
    assert printed("AP", "--per-query").stdout == sql_query("AP", per_query=True) + ";\n"
    assert printed("--checks", *options).stdout == sql_checks(**expected) + ";\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "pass measures"),
        (("AP", "--checks"), "pass measures"),
        (("AP", "--column", "grade"), "got 'grade', expected COLUMN=NAME"),
        (("AP", "--column", "rank=r"), "unknown column 'rank'"),
        (("AP", "--run", "a b; c"), "is not the name of a table"),
        (("alpha_nDCG@10",), "cannot be written in SQL"),
    ],
)
def test_refuses_what_it_cannot_write(arguments, message):
    result = printed(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
