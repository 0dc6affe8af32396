"""Time of repeated calls of one engine, as JSON; run as a separate process.

    python benchmarks/warm.py '{"engine": ..., "form": ..., "work": ..., "measures": ...}'

Judgments are prepared before timing, except for the form "dicts, not prepared".
"""

from __future__ import annotations

import importlib
import json
import sys
from functools import partial
from typing import Any

from clock import timed
from engines import ENGINES
from workloads import Work, columns, mappings


def main() -> None:
    """Time the calls and print the result."""
    asked = json.loads(sys.argv[1])
    form, _, how = asked["form"].partition(", ")
    qrels, run = inputs(Work(**asked["work"]), form)
    prepare = partial(ENGINES[asked["engine"]].prepared, qrels, asked["measures"])
    evaluate = prepare()
    took = timed(lambda: (prepare() if how else evaluate)(run))
    took["means"] = took.pop("found")
    print(json.dumps(took))


def inputs(work: Work, form: str) -> tuple[Any, Any]:
    """Return judgments and a run as dicts or as data frames of the library `form`."""
    if form == "dicts":
        return mappings(work)
    library = importlib.import_module(form)
    qrels, run = columns(work)
    return library.DataFrame(qrels), library.DataFrame(run)


if __name__ == "__main__":
    main()
