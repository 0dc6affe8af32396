"""Bugs in what a check says of texts, in mended copies, in its reports, and in notes."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    # ---- texts
    Bug("texts: a judged twin gets the grade, too", "checking/texts.py",
        "if twin not in grades:", "if True:"),
    Bug("texts: leaks that are not judged are counted", "checking/texts.py",
        "for q, d in seen.scanned.leaks.items() if q in seen.qrels",
        "for q, d in seen.scanned.leaks.items()"),
    Bug("texts: repeats of what is not relevant are named first", "scanning.py",
        "for place in later[np.isin(original[later], original[list(relevant)])].tolist():",
        "for place in later.tolist():"),
    # ---- copies
    Bug("copies: any line that is no row stays", "checking/copying.py",
        "elif header and self._is_header(line):", "elif header:"),
    Bug("copies: the header goes", "checking/copying.py",
        "elif header and self._is_header(line):", "elif False:"),
    Bug("copies: the number is written although it stays", "checking/copying.py",
        "number_text(value, self.layout).encode() if other else None",
        "number_text(value, self.layout).encode()"),
    Bug("copies: lines in the order of the table", "checking/copying.py",
        "first, then = np.argsort(before.lines), np.argsort(after.lines)",
        "first, then = np.argsort(before.lines), np.arange(len(after))"),
    Bug("mend: the last of several", "checking/fixes.py",
        "lambda group: group[0], alike=True", "lambda group: group[-1], alike=True"),
    Bug("mend: different grades are the same", "checking/fixes.py",
        "if not alike or len(set(table.values[group].tolist())) == 1:", "if True:"),
    Bug("mend: ranks turned round", "checking/fixes.py",
        "np.diff(table.offsets)[numbers] - places", "places + 1"),
    Bug("mend: what was not asked for is mended", "checking/fixes.py",
        "if code in counts and (code in wanted or code in _SAFER):", "if code in counts:"),
    Bug("mend: lines that cannot be read go without being asked", "checking/fixes.py",
        "return _Copy(given, layout, before, table, done, left if done else ())",
        "return _Copy(given, layout, before, table, done, ())"),
    Bug("mend: ids that could mean two are taken", "checking/fixes.py",
        "if way is None or found is None or not found.one_to_one:",
        "if way is None or found is None:"),
    # ---- reports
    Bug("check: a warning fails as an error", "checking/result.py",
        "if LEVELS.index(found.kind.level) <= most",
        "if LEVELS.index(found.kind.level) <= most + 1"),
    Bug("check: properties of annotations are not escaped", "reports/annotations.py",
        """f"file={escaped(shown_plainly(file), ':,')}\"""", """f"file={shown_plainly(file)}\""""),
    Bug("check: effects that change nothing are shown", "reports/checks.py",
        "for effect in effects if effect.changes()]", "for effect in effects]"),
    # ---- notes
    Bug("notes: queries with exactly k relevant documents count", "gather.py",
        "more = block.relevant(recall.rel) > recall.k",
        "more = block.relevant(recall.rel) >= recall.k"),
    Bug("notes: grades of the level are below it", "gather.py",
        "(low > 0) & (low < plan.level)", "(low > 0) & (low <= plan.level)"),
    Bug("notes: one ranking of one score is enough", "mapped.py",
        "if next(scores) != one or any(score != one for score in scores):",
        "if next(scores) != one:"),
    Bug("notes: what was not found has no relevant document", "notes.py",
        "known = level is not None and lacking(level)[undefined[:, column]].all()",
        "known = level is not None and lacking(level)[undefined[:, column]].any()"),
)  # fmt: skip
