"""Judgments, runs and a baseline to gate."""

import numpy as np
from strategies import graded_runs

from rankgauge import Baseline, Run

QRELS, RUNS = graded_runs(digits=2)
OLD = Baseline.from_run(QRELS, Run.of(RUNS["s1"], name="old"))


def jittered(seeds):
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        found.append({q: {d: s + rng.normal(0, 0.3) for d, s in docs.items()} for q, docs in RUNS["s1"].items()})
    return found


LATENCY = {"latency": {"p50": 1.1, "p95": 1.2}}
