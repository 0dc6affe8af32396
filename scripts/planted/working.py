"""Bugs in values worked out by hand, in what sets two numbers apart, and in how one came about."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    Bug("working: the discount begins a rank too early", "explaining/graded.py",
        "return math.log2(rank + 1), f", "return max(math.log2(rank), 1.0), f"),
    Bug("working: precision is divided by what was found", "explaining/binary.py",
        'value = found / words["k"]', "value = found / max(len(rows), 1)"),
    Bug("working: equal scores stand by ascending id", "explaining/listing.py",
        "(*(-byte - 1 for byte in document), 0)", "(*(byte + 1 for byte in document), 0)"),
    Bug("working: judged only keeps the old ranks", "explaining/listing.py",
        "return replace(self, documents=_numbered(kept))",
        "return replace(self, documents=tuple(kept))"),
    Bug("reconciliation: the rest is forgotten", "explaining/reconciliation.py",
        "rest=theirs - mean,", "rest=0.0,"),
    Bug("reconciliation: a query that leaves is one that moved", "explaining/reconciliation.py",
        "left=len(before.keys() - both),", "left=0,"),
    Bug("reconciliation: printed changes do not add up", "reports/reconciliations.py",
        'f"{after - before:+.{digits}f}"', 'f"{one.change:+.{digits - 2}f}"'),
    Bug("given: half a digit too much is let pass", "explaining/given.py",
        "0.5 * 10.0**-digits", "50 * 10.0**-digits"),
    Bug("reproduction: rivals are not told", "explaining/reproduction.py",
        "rivals = [other for other in fits[1:] if not other.missed]", "rivals = fits[1:1]"),
    Bug("reproduction: values that are missed are no evidence", "explaining/reproduction.py",
        "return self.missed, first, tier, off, self.place",
        "return 0, first, tier, off, self.place"),
)  # fmt: skip
