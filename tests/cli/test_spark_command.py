"""Usage errors of ``rankgauge spark``, which need no Spark."""

import command
import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'RUN...'"),
        (("run.txt", "--per-query"), "--per-query"),
        (("run.txt", "--as", "trec"), "'trec' is not one of"),
        (("run.txt", "--queries", "ids.txt"), "'ids.txt' is not one of 'all', 'intersection'"),
    ],
)
def test_only_options_that_spark_supports_are_accepted(arguments, message):
    result = command.run("spark", "qrels.txt", *arguments)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())


def test_the_former_option_names_the_command():
    result = command.run("evaluate", "qrels.txt", "run.txt", "--engine", "spark")
    assert "fix: write rankgauge spark QRELS RUN" in result.stderr
