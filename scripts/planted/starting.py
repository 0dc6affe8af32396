"""Bugs in what a cold process loads, and in what stands in for what it does not load."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    Bug("start: letters of two cells count one", "render.py",
        "if not all(map(_is_narrow, (name, *cells))):", "if False:"),
    Bug("start: notes of any letters", "render.py",
        "if not all(map(_is_narrow, (table.title, *table.notes))):", "if False:"),
    Bug("start: marked numbers stand to the right", "render.py",
        "            body = str.ljust\n", "            pass\n"),
    Bug("start: spaces at the end move a number", "render.py",
        ' and not text.endswith(" ")', ""),
    Bug("start: nothing is near a command nobody knows", "cli/main.py",
        "in _COMMANDS else _COMMANDS:", "in _COMMANDS else ():"),
    Bug("start: help asks for the forms", "cli/evaluate.py",
        'click.Choice(["table", "markdown", "latex", "html", "csv", "json", "trec"])',
        "click.Choice(rankgauge.FORMS)"),
    Bug("start: help leaves out a method", "cli/fuse.py", "combmed, wsum.", "combmed."),
    Bug("start: the first second does not count", "cli/progress.py",
        "    progress.tasks[0].start_time = began\n", ""),
    Bug("start: two files load what records need", "evaluation.py",
        "    chosen = selected(queries)\n",
        "    chosen = selected(queries)\n    import rankgauge.records  # noqa: F401\n"),
    Bug("start: numbers are distinct from the one before", "table.py",
        "ordered = np.sort(numbers, axis=None)", "ordered = np.ravel(numbers)"),
    Bug("start: the suffix of a file in capitals", "formats/naming.py",
        "suffix in name.lower() for suffix", "suffix in name for suffix"),
    Bug("start: masked numbers are not looked for", "formats/memory.py",
        'masked = "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray)',
        "masked = False"),
)  # fmt: skip
