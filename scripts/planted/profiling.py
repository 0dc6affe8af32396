"""Bugs in the ways of other tools."""

from planted.bug import Bug

__all__ = ["BUGS"]

_STEPS = "profiles/steps.py"

BUGS = (
    Bug("32-bit scores: kept in 64", _STEPS,
        "values = table.values.astype(np.float32).astype(np.float64)",
        "values = table.values + 0.0"),
    Bug("ties by ascending id: descending", _STEPS,
        "np.arange(len(table)), numbers)[::-1]", "np.arange(len(table)), numbers)"),
    Bug("no self-retrieval: nothing is removed", _STEPS,
        "table.keep(np.flatnonzero(~same))", "table.keep(np.flatnonzero(same | ~same))"),
    Bug("only queries with a relevant document: any judged", _STEPS,
        "table.query_numbers()[table.values >= 1]", "table.query_numbers()[table.values >= -9]"),
    Bug("binary grades: from 2 on", _STEPS,
        "np.where(values >= 1, 1.0", "np.where(values >= 2, 1.0"),
    Bug("only queries of the run: all of them", _STEPS, 'queries="intersection"', 'queries="all"'),
    Bug("nothing without a ranking: everything", _STEPS,
        "query in known for query", "query is not known for query"),
    Bug("BEIR: own loops keep 32 bits", "profiles/benchmarks.py",
        "return NO_SELF, INPUT_TIES", "return NO_SELF, SINGLE_PRECISION, INPUT_TIES"),
    Bug("BEIR: MRR over queries of the run", "profiles/benchmarks.py",
        "return NO_SELF, INPUT_TIES", "return NO_SELF, INPUT_TIES, RUN_QUERIES_ONLY"),
    Bug("trec_eval 10: recall points as before", "profiles/trec.py",
        'points="nearest"', 'points="up"'),
    Bug("SetF of trec_eval: beta as it is", "profiles/trec.py",
        "beta=math.sqrt(measure.beta),", "beta=measure.beta,"),
    Bug("undefined values left out: counted 0", _STEPS, 'undefined="skip"', 'undefined="zero"'),
    Bug("first result skipped: the last", _STEPS,
        "np.lexsort((-table.values, numbers))", "np.lexsort((table.values, numbers))"),
    Bug("grades clipped at the top: not", _STEPS, "np.minimum(values, top)", "values"),
    Bug("profiled: means over all queries", "evaluation.py",
        "counted = np.flatnonzero(~self.left_out[:, column])",
        "counted = np.arange(len(self.left_out))"),
    Bug("profiled: contradictions are let pass", "profiled.py",
        "if wanted != does:", "if wanted == does and wanted != does:"),
)  # fmt: skip
