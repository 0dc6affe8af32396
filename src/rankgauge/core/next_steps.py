"""All recommended next steps, by the state in which an output recommends them.

Names in capital letters in a command stand for files of the user; `{...}` is filled in.
"""

from __future__ import annotations

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
    "judge: no questions": "add questions: rankgauge judge questions {project} FILE",
    "judge: no candidates": (
        "add candidates for {questions}: rankgauge judge pool {project} --collection FOLDER --run RUN"
    ),
    "judge: tasks left": "judge: rankgauge judge serve {project}",
    "judge: done": "export the judgments: rankgauge judge export {project} qrels.txt",
    "logs import: dry run": "run the same command without --dry-run",
    "logs import: imported": "rankgauge logs metrics {log}",
    "bench": "add --diagnose to see likely causes of the misses of the lowest run",
    "bench: diagnosed": "add --full to see all differences, the worst queries, and latency",
    "answers evaluate": "--full shows whether retrieval or generation limits the answers",
    "report of evaluations": "Find the likely causes: rankgauge report QRELS RUN --diagnose",
    "report of answers": ("Find the stage that limits the answers: rankgauge answers evaluate FILE --full"),
    "answers: retrieval limits": "Improve retrieval: rankgauge diagnose QRELS RUN",
    "answers: no cause": "Judge more questions",
}


def next_step(state: str, **words: str) -> str:
    """Return the recommended next step in a state.

    Example:
        >>> next_step("judge: tasks left", project="p.db")
        'judge: rankgauge judge serve p.db'
    """
    return NEXT_STEPS[state].format(**words)
