"""Judgments and runs to compare."""

import numpy as np
from strategies import graded_runs

from rankgauge import compare, evaluate

QRELS, RUNS = graded_runs()
FOUND = compare(QRELS, RUNS, ["nDCG@10", "AP"])


def values_of(name: str, measure: str) -> np.ndarray:
    return evaluate(QRELS, RUNS[name], measure).per_query[:, 0]
