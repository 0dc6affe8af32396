"""Bugs in ties: orders by grade, means over all orders, draws, and the report."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    Bug("worst: the unjudged stand below", "join.py",
        "places += last - first + 1 - np.repeat(members, members)", "places += 0"),
    Bug("best is worst", "join.py",
        'grade if ties == "worst" else -grade', 'grade if ties == "best" else -grade'),
    Bug("by grade: groups of two queries are one", "join.py",
        "new[1:] = (query[1:] != query[:-1]) | (first[1:] != first[:-1])\n    heads = "
        "np.flatnonzero(new)\n    members = np.diff(np.append(heads, len(order)))",
        "new[1:] = first[1:] != first[:-1]\n    heads = "
        "np.flatnonzero(new)\n    members = np.diff(np.append(heads, len(order)))"),
    Bug("mean: the share of a group past k", "judged.py",
        "within = np.minimum(self.tie_last, last) - self.tie_first + 1",
        "within = np.minimum(self.tie_last, last) - self.tie_first"),
    Bug("mean: weights past k count", "judged.py",
        "looked_at = last if k is None else np.minimum(last, k)", "looked_at = last"),
    Bug("mean: what rounding took is forgotten", "judged.py",
        " + (rest[looked_at] - rest[start])", ""),
    Bug("mean of RR: without a cut-off", "kernels/expected.py",
        "upto = np.clip(k - first + 1, 0, upto)", "upto = np.clip(k, 0, upto)"),
    Bug("mean of RR: drawn with replacement", "kernels/expected.py",
        "left = np.maximum(size - places, 1)\n    stay", "left = size + 0 * places\n    stay"),
    Bug("mean of Success: places and relevant documents not exchanged", "kernels/expected.py",
        "fewer, more = np.minimum(slots, relevant), np.maximum(slots, relevant)",
        "fewer, more = slots, slots"),
    Bug("mean of AP: others of the group forgotten", "kernels/expected.py",
        "pace = (members - 1) / np.maximum(size - 1, 1)", "pace = 0.0 * members"),
    Bug("mean of AP over what was found: all numbers alike likely", "kernels/expected.py",
        "return good / np.maximum((number + 1) * others, 1)", "return 1.0 * (good > 0)"),
    Bug("mean of bpref: no more than all", "kernels/expected.py",
        "rising = np.clip(whole[:, None] - above, 0, inside)", "rising = inside"),
    Bug("mean of FirstRel: heaps", "kernels/expected.py",
        "(size - relevant) / (relevant + 1)", "(size - relevant) / np.maximum(relevant, 1)"),
    Bug("draws: judged documents stand together", "drawing.py",
        "above += between", "above += 0 * between"),
    Bug("draws: one stream for all queries", "drawing.py",
        'int.from_bytes(digest, "big")', "0"),
    Bug("tie report: the mean is the value", "tied.py",
        'mean=means["mean"][name]', 'mean=means["value"][name]'),
    Bug("tie report: queries that were not evaluated count", "tied.py",
        "query, size = query[wanted[query]], size[wanted[query]]", ""),
)  # fmt: skip
