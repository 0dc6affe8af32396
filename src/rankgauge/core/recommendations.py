"""All recommendations: next steps by the state of an output, and measures by use case.

Names in capital letters in a command stand for files of the user; `{...}` is filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rankgauge.core.arguments import known_name

NEXT_STEPS = {
    "gate: FAIL with losses": ("Fix the run, starting with the {units} that lost most; do not replace the baseline."),
    "gate: FAIL without losses": ("Fix the run, starting with the checks that failed; do not replace the baseline."),
    # Such a run cannot become the baseline.
    "gate: faulty run": "Fix the run, and compare it again; do not replace the baseline.",
    "gate: other inputs than the baseline": (
        "Use the inputs of the baseline, or write a new one: repeat the command with --update-baseline"
    ),
    "gate: other inputs than the anchor": (
        "Use the inputs of the anchor, or write a new one from its run: rankgauge gate QRELS RUN "
        "--update-baseline --baseline FILE"
    ),
    # Do not suggest a larger margin: it is the accepted loss, whatever the data.
    "gate: INCONCLUSIVE": "Judge more {units}, and compare again.",
    "gate: INCONCLUSIVE, number known": (
        "Judge more {units}, and compare again: a decision needs about {number} in total."
    ),
    "gate: PASS unless rare collapse": (
        "Release the run if the change cannot make a few {units} fail completely; otherwise judge more {units}."
    ),
    "gate: IDENTICAL": "Check that the run was made with the change.",
    "gate: PASS": ("Release the run, and make it the baseline: repeat the command with --update-baseline"),
    "gate: PASS with a loss": (
        "Release the run, but keep the baseline: the mean is worse, and losses within the margin "
        "add up if each becomes the baseline."
    ),
    "diagnose: k is small": "retrieve and show more than {k} documents",
    "diagnose: nothing missed": "nothing to fix in the first {k}",
    "init: judged": "rankgauge bench{project}",
    "init: no judgments": "{cd}rankgauge judge create",
    "init: judgments and runs": "rankgauge evaluate {qrels} {runs}",
    "init: incomplete": "add {missing}",
    "project: no questions": "name the documents and the questions in rankgauge.toml: [collection]",
    "project: no judgments": (
        "judge some documents: rankgauge judge create; or name judgments in [collection]: qrels = FILE"
    ),
    "project: no candidates": "add the documents to judge: rankgauge judge pool",
    "project: no evaluation": "run the retrievers and evaluate them: rankgauge bench",
    "project: tasks left": "judge the open tasks: rankgauge serve",
    "project: judgments changed": "evaluate the saved runs on the new judgments: rankgauge evaluate --again",
    "project: worse": "find the likely causes: rankgauge diagnose @latest",
    "project: evaluated": "change a retriever, and compare it: rankgauge bench",
    "judge: no questions": "add questions: rankgauge judge questions FILE{flag}",
    "judge: no candidates": "add candidates for {questions}: rankgauge judge pool{sources}{flag}",
    "judge: tasks left": "judge: rankgauge serve{flag}",
    "judge: more people": (
        "invite another judge: rankgauge judge invite NAME{flag}; or export the judgments: "
        "rankgauge judge export qrels.txt{flag}"
    ),
    "judge: done": "export the judgments: rankgauge judge export qrels.txt{flag}",
    "logs import: dry run": "run the same command without --dry-run",
    "logs import: imported": "rankgauge logs metrics {log}",
    "bench": "add --diagnose to see likely causes of the misses of {run}",
    "answers evaluate": "--full shows whether retrieval or generation limits the answers",
    "report of evaluations": "Find the likely causes: rankgauge report QRELS RUN --diagnose",
    "report of answers": ("Find the stage that limits the answers: rankgauge answers evaluate FILE --full"),
    "answers: retrieval limits": "Improve retrieval: rankgauge diagnose QRELS RUN",
    "answers: no cause": "Judge more questions",
}


def next_step(state: str, **words: str) -> str:
    """Return the recommended next step in a state.

    Example:
        >>> next_step("judge: tasks left", flag=" --store p.db")
        'judge: rankgauge serve --store p.db'
    """
    return NEXT_STEPS[state].format(**words)


class UseCase(NamedTuple):
    """A use case of retrieval with its recommended measures.

    Attributes:
        name: Name for lookup.
        title: A short description.
        measures: Names of measures, most important first.
        why: Reason for these measures.
    """

    name: str
    title: str
    measures: tuple[str, ...]
    why: str


USE_CASES: Mapping[str, UseCase] = {
    case.name: case
    for case in (
        UseCase(
            "qa",
            "question answering",
            ("RR", "Success@1"),
            "one good document is enough, and it should be first: RR is 1 / its rank, Success@1 "
            "is how often it is first",
        ),
        UseCase(
            "search",
            "search pages",
            ("nDCG@10", "P@10"),
            "people read a page of ten: nDCG@10 rewards better documents at higher ranks, P@10 "
            "is the useful share of the page",
        ),
        UseCase(
            "rag",
            "retrieval for a language model",
            ("R@5", "P@5", "RR"),
            "the model cannot use passages that it does not get (R@5), is distracted by "
            "irrelevant ones (P@5), and favors the first ones (RR)",
        ),
        UseCase(
            "legal",
            "legal discovery and other exhaustive reviews",
            ("R@100", "P@100"),
            "a missed document is a costly mistake (R@100), and each irrelevant one costs work (P@100)",
        ),
        UseCase(
            "recommendation",
            "recommendation",
            ("nDCG@5", "P@5"),
            "a short list is shown once: order and share of good items in the first five",
        ),
        UseCase(
            "fact-check",
            "fact checking",
            ("Success@3", "RR"),
            "one piece of evidence decides: whether it is in the top three, and at which rank",
        ),
    )
}


def use_case(name: str) -> UseCase:
    """Return the use case with this name.

    Raises:
        UnknownName: If there is none; the error suggests similar names.

    Example:
        >>> use_case("qa").measures
        ('RR', 'Success@1')
    """
    known_name("use case", name, USE_CASES)
    return USE_CASES[name]
