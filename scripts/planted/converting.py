"""Bugs in writing files, in finding what a file holds, and in saying what is lost."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    # ---- numbers and ids
    Bug(
        "writing: the sign of a zero is lost",
        "formats/layout.py",
        " and (value or math.copysign(1, value) > 0) else value",
        " else value",
    ),
    Bug(
        "writing: blanks at the edge of an id pass",
        "formats/trec.py",
        "    if joined.split() != given:\n",
        "    if len(joined.split()) != len(given):\n",
    ),
    Bug(
        "writing: equal ranks of MS MARCO stand as given",
        "formats/exchange.py",
        "    if new.all():\n",
        "    if len(new):\n",
    ),
    Bug(
        "writing: ratings are cut to whole ones",
        "formats/exchange.py",
        "    _refuse_grades(table, form)\n",
        "",
    ),
    Bug(
        "writing: ratings of 64 bits",
        "formats/exchange.py",
        "MOST_RATING = 2**31 - 1",
        "MOST_RATING = 2**62",
    ),
    Bug(
        "writing: a run passes for judgments",
        "formats/exchange.py",
        "    _refuse_kind(layout, form)\n",
        "",
    ),
    Bug(
        "writing: groups of rows forget the query",
        "formats/columnwriting.py",
        "pa.array(numbers[here])",
        "pa.array(numbers[: len(numbers[here])])",
    ),
    Bug(
        "writing: half a file stays",
        "formats/writing.py",
        "                writable.unlink(missing_ok=True)\n",
        "                pass\n",
    ),
    # ---- texts
    Bug(
        "texts: a break in a line of tabs passes",
        "formats/textwriting.py",
        "        if not any(_BREAKS.search(cell) for cell in cells):\n",
        "        if cells:\n",
    ),
    Bug(
        "texts: marked up and not read again",
        "formats/textwriting.py",
        "        if text != row.text:\n",
        "        if False:\n",
    ),
    Bug(
        "texts: marks are not escaped",
        "formats/textwriting.py",
        "<TEXT>\\n{html.escape(row.text, quote=False)}",
        "<TEXT>\\n{row.text}",
    ),
    Bug(
        "texts: a field that is no text passes",
        "formats/textwriting.py",
        '        self._unheld.add(f"that field {name!r} is no text", row)\n',
        "",
    ),
    # ---- what is said
    Bug(
        "lost: the last tags are not counted",
        "formats/unread.py",
        "        tags.update(found.tags)\n",
        "        tags = tags or found.tags\n",
    ),
    Bug(
        "lost: ranks are held against another row",
        "formats/unread.py",
        'of_row[np.argsort(table.lines, kind="stable")] = ranks',
        "of_row[:] = ranks",
    ),
    Bug(
        "lost: a field too many passes",
        "formats/unread.py",
        "    seconds.pop(_USUAL[layout.name], None)\n",
        "    seconds.clear()\n",
    ),
    Bug(
        "kinds: scores of three columns are grades",
        "formats/kinds.py",
        'return ("qrels", "run") if ranks else ("qrels",)',
        'return ("qrels",)',
    ),
    Bug(
        "kinds: the first of two is taken",
        "formats/kinds.py",
        "    if len(found) == 1:\n",
        "    if found:\n",
    ),
    Bug(
        "convert: it writes over what it reads",
        "conversion.py",
        "    if same:\n",
        "    if same and target is source:\n",
    ),
    Bug(
        "convert: a query without judgments goes in silence",
        "conversion.py",
        "    if isinstance(held, Qrels) and not wanted.lossy:\n",
        "    if False:\n",
    ),
    Bug(
        "convert: a part of a collection stays",
        "formats/beir.py",
        "        shutil.rmtree(made, ignore_errors=True)\n",
        "        pass\n",
    ),
    Bug(
        "convert: the format beside a path is not heard",
        "conversion.py",
        "source, source_format = source.path, source_format or source.format",
        "source = source.path",
    ),
    Bug(
        "convert: the format of texts is not heard",
        "conversion.py",
        "reader = _Seen(TextReader(source, given))",
        "reader = _Seen(TextReader(source))",
    ),
    Bug(
        "convert: judgments under the name of an archive",
        "conversion.py",
        "    form = wanted.pairs_form\n    refuse_ending(wanted.target, wanted.format)\n",
        "    form = wanted.pairs_form\n",
    ),
    Bug(
        "convert: ranks are scores that get lost",
        "conversion.py",
        "if form in RUNS_TOO and not _only_ranks(table):",
        "if form in RUNS_TOO:",
    ),
    Bug(
        "convert: what is left to fill in is not said",
        "conversion.py",
        "notes=(*held.table.notes, *([_WANTING[form]] if form in _WANTING else [])),",
        "notes=held.table.notes,",
    ),
)
