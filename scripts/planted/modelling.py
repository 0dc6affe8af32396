"""Bugs in models of a reader, in measures of order, and in what trec_eval has beyond the usual."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    # ---- readers
    Bug("INST: the goal counted once", "kernels/readers.py",
        "path.first + (2 * goal - 1) - path.before", "path.first + (goal - 1) - path.before"),
    Bug("INST: a gain counts from the next rank on", "kernels/readers.py",
        "- path.before / path.unit - gain, 0.0)", "- path.before / path.unit, 0.0)"),
    Bug("INSQ: weights not of all k ranks", "kernels/readers.py",
        "np.array([2.0 * goal, 2.0 * goal + k])", "np.array([2.0 * goal, 2.0 * goal + k - 1])"),
    Bug("BPM: goes on with the goal reached", "kernels/readers.py",
        "steps = np.ceil(wanted / np.where(gains, path.gained, 1.0)) - 1",
        "steps = np.floor(wanted / np.where(gains, path.gained, 1.0))"),
    Bug("NERR: stops never", "kernels/readers.py",
        "through * (1 - path.gain), through)", "through, through)"),
    Bug("readers: what is not judged is hoped to gain a grade of 1", "kernels/readers.py",
        "np.full(first.shape, unknown * _unit(worth))", "np.full(first.shape, unknown)"),
    Bug("readers: the rank below a document is passed", "kernels/readers.py",
        "ranks[:, ::2] = np.maximum(ends[:, 1:] - first[:, ::2], 0)",
        "ranks[:, ::2] = np.maximum(ends[:, 1:] - first[:, ::2] - 1, 0)"),
    Bug("SDCGres: pooled documents count as judged", "kernels/readers.py",
        "np.where(run.judged & run.within(k), run.discounts(), 0.0)",
        "np.where(run.in_qrels & run.within(k), run.discounts(), 0.0)"),
    # ---- orders
    Bug("Compat: from the higher of the two ranks on", "kernels/orders.py",
        "np.maximum(run.rank, ideal), k + 1)", "np.minimum(run.rank, ideal), k + 1)"),
    Bug("Compat: documents of one grade share a rank", "kernels/orders.py",
        "higher + place - np.take_along_axis(first, place, axis=1) + 1", "higher + 1"),
    Bug("PairAcc: a relevant document above another one is wrong", "kernels/orders.py",
        "above = np.where(found, run.rank - upto, 0)", "above = np.where(found, run.rank - 1, 0)"),
    # ---- beyond the usual
    Bug("RelP: divided by R", "kernels/binary.py",
        "np.minimum(run.divisor(rel), k)\n\n\n@measure(\n", "run.divisor(rel)\n\n\n@measure(\n"),
    Bug("NCG: the best of all ranks", "kernels/graded.py",
        "run.total(_best(run, scale)[:, :k])", "run.total(_best(run, scale))"),
    Bug("RnDCG: the end of the ranking left out", "kernels/graded.py",
        "last = run.retrieved > run.count(best > 0) + 1",
        "last = run.retrieved < 0"),
    Bug("G: costs of the rank above", "kernels/graded.py",
        "beyond = np.where(run.in_qrels, run.rank, 0) - known",
        "beyond = np.where(run.in_qrels, run.rank, 0) - known - 1"),
    Bug("b: discounts begin a rank early", "judged.py",
        "1.0 if rank <= b else", "1.0 if rank < b - 1 else"),
    Bug("rel=best: the best of all queries", "judged.py",
        "return best_grade(self.ideal[:, :1])",
        "return best_grade(self.ideal[:, :1].max(keepdims=True))"),
)  # fmt: skip
