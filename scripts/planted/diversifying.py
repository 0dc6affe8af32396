"""Bugs in judgments by subtopic and in the measures that read them."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    Bug("diversity: a document counts itself as above", "kernels/diversity.py",
        "above = np.cumsum(found, axis=1, dtype=np.int64) - found",
        "above = np.cumsum(found, axis=1, dtype=np.int64)"),
    Bug("diversity: novelty is turned round", "kernels/diversity.py",
        "worth = _powers(1 - alpha, int(", "worth = _powers(alpha, int("),
    Bug("diversity: an ideal document is taken again", "kernels/diversity.py",
        "left[:, queries, chosen] = 0.0", "pass"),
    Bug("diversity: the ideal takes the lowest id", "kernels/diversity.py",
        "chosen = np.argmax(gain >= best[:, None] * _ALMOST, axis=1)",
        "chosen = gain.shape[1] - 1 - np.argmax((gain >= best[:, None] * _ALMOST)[:, ::-1], axis=1)"),
    Bug("diversity: rounding decides", "kernels/diversity.py",
        "_ALMOST = 1 - 1e-12", "_ALMOST = 1.0"),
    Bug("diversity: subtopics without a relevant document count", "subtopics.py",
        "found = JudgedRun.count(self.relevant(rel) > 0)",
        "found = JudgedRun.count(self.relevant(rel) >= 0)"),
    Bug("diversity: the ideal ends at the first rank", "kernels/diversity.py",
        "ranks = max(_LEAST, 1 << (min(k, run.pool.shape[1]) - 1).bit_length())",
        "ranks = 8"),
    Bug("diversity: what is divided by ends too early", "kernels/diversity.py",
        "math.ceil(_BITS / -math.log2(1 - alpha)) + 1)", "3)"),
    Bug("subtopics: the last grade is the highest", "subtopics.py",
        "np.maximum.reduceat(grades, heads)", "grades[np.append(heads[1:], len(grades)) - 1]"),
    Bug("subtopics: a tie of other subtopics is none", "gather.py",
        "tied = distinct(np.append(tied, self.detail.tied(joined)))", "pass"),
    Bug("subtopics: judgments without any are read", "subtopics.py",
        "if len(names) == 1 and names[0] in _ITERATIONS:", "if not names:"),
    Bug("subtopics: a fingerprint does not know them", "fingerprints.py",
        'return _digest(b"rankgauge judgments of %b 1\\n" % source.reads.encode(), source.keyed)',
        'return _digest(b"rankgauge judgments 1\\n", source.qrels.table)'),
    Bug("subtopics: a grade may stand twice", "subtopics.py",
        "    if len(twice):", "    if len(twice) > 9:"),
    Bug("subtopics: a line may have any width", "formats/wide.py",
        "        if len(parts) != width:", "        if len(parts) < 2:"),
)  # fmt: skip
