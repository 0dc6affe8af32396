"""Bugs in preferences and in the measures that read them."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    Bug("preferences: what follows from two sub-groups is none", "preferences.py",
        "over |= over[:, middle, None] & over[middle]", "pass"),
    Bug("preferences: a negative grade is a low one", "preferences.py",
        "judged = start + np.flatnonzero(self.grade[start:stop] >= 0)",
        "judged = start + np.arange(stop - start)"),
    Bug("preferences: a contradiction is kept", "preferences.py",
        "        if len(both):", "        if len(both) > 99:"),
    Bug("preferences: what was not retrieved stands above", "preferences.py",
        "lost = int(np.count_nonzero(over[there:, :there]))",
        "lost = 0"),
    Bug("preferences: equal grades are preferred", "preferences.py",
        "same, below = group.grade == level, group.grade < level",
        "same, below = group.grade == level, group.grade <= level"),
    Bug("preferences: a pair counts as often as it was judged", "preferences.py",
        "judged = np.triu(kept + lost) > 0", "judged = np.triu(kept) > 0"),
    Bug("preferences: the others are not held against themselves", "preferences.py",
        "whole += rest * good", "whole += 0"),
    Bug("preferences: a group without any is left out", "kernels/preferring.py",
        "groups = np.maximum(run.groups(), 1)",
        "groups = np.maximum((given > 0).sum(axis=1), 1)"),
    Bug("preferences: any tie counts", "preferences.py",
        "return replace(joined, grade=self._kinds[joined.rows]).tied(condensed=True)",
        "return replace(joined, grade=self._kinds[joined.rows]).tied()"),
    Bug("preferences: the fingerprint does not know groups", "preferences.py",
        "keyed = Ids.keyed(zip(docs, names, strict=True))",
        "keyed = Ids.keyed((doc, b'') for doc in docs)"),
)  # fmt: skip
