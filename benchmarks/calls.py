"""CPU time of calls for one query in microseconds, as JSON; run as a separate process.

    python benchmarks/calls.py [--tiny]

Ten documents, judgments prepared, and measures parsed; best of several rounds.
"""

from __future__ import annotations

import json
import sys
import time
import timeit
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from engines import ENGINES
from workloads import SHARED

DOCS = [f"d{place}" for place in range(10)]
GRADES = {f"d{place}": place % 3 for place in range(0, 20, 3)}
RUN = {"q": {doc: 10.0 - place for place, doc in enumerate(DOCS)}}


def calls() -> dict[str, Callable[[], Any]]:
    """Return the timed calls by name."""
    import rankgauge
    from rankgauge import functional
    from rankgauge.tutorials import RetrievalEvaluator

    truth = rankgauge.Qrels.of({"q": GRADES})
    usual = [rankgauge.parse(name) for name in SHARED]
    more = [*usual, *map(rankgauge.parse, ("ERR@20", "RBP(p=0.8)"))]
    evaluator = RetrievalEvaluator()
    found: dict[str, Callable[[], Any]] = {
        "`evaluate`, 18 measures": lambda: rankgauge.evaluate(truth, RUN, usual),
        "`evaluate`, a list": lambda: rankgauge.evaluate(truth, {"q": DOCS}, usual),
        "`evaluate`, and ERR, RBP": lambda: rankgauge.evaluate(truth, RUN, more),
        "`functional.ndcg_at_k`": lambda: functional.ndcg_at_k(DOCS, GRADES, 10),
        "`RetrievalEvaluator.evaluate_single`": lambda: evaluator.evaluate_single("q", DOCS, [*GRADES]),
    }
    if find_spec("pytrec_eval"):
        peer = ENGINES["pytrec_eval"].prepared({"q": GRADES}, SHARED)
        found["pytrec_eval, 18 measures"] = lambda: peer(RUN)
    return found


def main() -> None:
    """Time the calls and print the results."""
    number, repeat = (2, 1) if "--tiny" in sys.argv else (200, 7)
    print(
        json.dumps(
            {
                name: 1e6 * min(timeit.repeat(call, timer=time.process_time, number=number, repeat=repeat)) / number
                for name, call in calls().items()
            }
        )
    )


if __name__ == "__main__":
    main()
