"""Steps that several tools share: what they make of scores, queries and ties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankgauge.profiles.deviations import Case, Deviation

__all__ = ["RUN_QUERIES_ONLY", "SINGLE_PRECISION"]


def _single(case: Case) -> Case:
    table = case.run.table
    values = table.values.astype(np.float32).astype(np.float64)
    return case._replace(run=replace(case.run, table=replace(table, values=values)))


def _run_queries(case: Case) -> Case:
    return case._replace(policies=replace(case.policies, queries="intersection"))


SINGLE_PRECISION = Deviation(
    "32-bit scores",
    "scores are kept as 32-bit floats: what differs beyond that is a tie",
    "run",
    _single,
)
RUN_QUERIES_ONLY = Deviation(
    "only queries of the run",
    "a judged query that the run does not have is left out of the mean, not counted 0",
    "policy",
    _run_queries,
)
