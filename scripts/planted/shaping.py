"""Bugs in what a file is taken for: columns, three-column runs, JSON of tools, old collections."""

from planted.bug import Bug

__all__ = ["BUGS"]

BUGS = (
    Bug(
        "shapes: a rank is a score",
        "formats/thirds.py",
        "return replace(table, values=-table.values).said(said)",
        "return table.said(said)",
    ),
    Bug(
        "shapes: a rank may stand twice",
        "formats/thirds.py",
        "missed = np.flatnonzero(~seen)",
        "missed = np.flatnonzero(~fits)",
    ),
    Bug(
        "shapes: a rank may be below one",
        "formats/thirds.py",
        "(values >= 1) & (values <= most)",
        "(values <= most)",
    ),
    Bug(
        "shapes: a rank may be a fraction",
        "formats/thirds.py",
        " & (values == np.floor(values))",
        "",
    ),
    Bug(
        "shapes: blanks in cells part them",
        "formats/files.py",
        "not (data == _BLANK).any() and ",
        "",
    ),
    Bug(
        "shapes: empty cells are passed over",
        "formats/files.py",
        " and int((data == _TAB).sum()) == tabs",
        "",
    ),
    Bug(
        "shapes: five fields are a run",
        "formats/trec.py",
        'len(fields) == _TAGLESS and fields[1].upper() != b"Q0":',
        "False:",
    ),
    Bug(
        "shapes: a blank in an id is one in the tag",
        "formats/trec.py",
        "        and math.isnan(_number(parts[5]))\n",
        "",
    ),
    Bug(
        "shapes: the last name of a column wins",
        "formats/layout.py",
        "        first, *others = there\n",
        "        *others, first = there\n",
    ),
    Bug(
        "shapes: two names that are one are no error",
        "formats/layout.py",
        "    if columns.rivals:\n",
        "    if False:\n",
    ),
    Bug(
        "shapes: a position is a score",
        "formats/layout.py",
        "        if _word(columns.value) in _RANKS:\n",
        '        if _word(columns.value) == "rank":\n',
    ),
    Bug(
        "shapes: a comma parts every table",
        "formats/tables.py",
        '    for by in (usual, ",", ";", "|", "\\t"):\n',
        "    for by in (usual,):\n",
    ),
    Bug(
        "shapes: no warning of rounded ids",
        "formats/tables.py",
        "    return table.said(*rows.warnings())\n",
        "    return table\n",
    ),
    Bug(
        "shapes: one id in two indices is one document",
        "formats/shapes.py",
        "        if other != str(index):\n",
        "        if False:\n",
    ),
    Bug(
        "shapes: hits without a score stand upside down",
        "formats/shapes.py",
        "(doc, -rank) for rank,",
        "(doc, rank) for rank,",
    ),
    Bug(
        "shapes: ratings of a response are all there are",
        "formats/shapes.py",
        "recall, AP and nDCG come out too high",
        "",
    ),
    Bug(
        "shapes: what trec_eval prints are judgments",
        "formats/lookalikes.py",
        "    if printed is not None and (",
        "    if printed is None and (",
    ),
    Bug(
        "shapes: a block of documents goes on to the end",
        "formats/classic.py",
        "        elif query and fields == [_END]:\n",
        "        elif fields == [_END, _END]:\n",
    ),
    Bug(
        "shapes: a named format is not heard in blocks",
        "formats/files.py",
        "        form = given or format_of(name) or _guess(start.strip(), layout)\n",
        "        form = format_of(name) or _guess(start.strip(), layout)\n",
    ),
)
