"""Usage errors of ``rankgauge evaluate --engine spark``, which need no Spark."""

import command
import pytest

SPARK = ("--engine", "spark")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run.txt", "--master", "yarn"), "--master and --values need --engine spark"),
        (("run.txt", "--values", "out"), "--master and --values need --engine spark"),
        (SPARK, "--engine spark needs QRELS and RUN"),
        (("run.txt", *SPARK, "--per-query", "--memory", "1GB"), ": --per-query, --memory"),
        (("run.txt", *SPARK, "--save", "--profile", "ranx"), ": --profile, --save"),
        (("run.txt", *SPARK, "--jobs", "1"), ": --jobs"),
        (("run.txt", *SPARK, "--as", "trec"), ": --as trec"),
        (("run.txt", *SPARK, "--queries", "ids.txt"), "--queries is all or intersection"),
    ],
)
def test_options_that_do_not_fit_the_engine_are_named(arguments, message):
    result = command.run("evaluate", "qrels.txt", *arguments)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
