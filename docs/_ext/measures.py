"""Write a page for each measure and an overview of all measures from the catalog.

The pages are ``reference/measures/*.markdown``: handwritten pages end in ``.md``.
"""

import functools
import math
import re
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import rankgauge
from rankgauge.core.grammar import VOCABULARY
from rankgauge.reports.catalogue import elsewhere, over_ties

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from sphinx.application import Sphinx

    from rankgauge import Measure
    from rankgauge.measures.declaration import Declaration

FOLDER = Path("reference", "measures")
SUFFIX = ".markdown"
_LONGEST_NAME = 40

# One query for all pages, with a judged document not retrieved and an unjudged one retrieved.
JUDGMENTS = {"q1": {"d1": 3, "d2": 2, "d3": 0, "d4": 1, "d5": 2}}
RUN = {"q1": ["d3", "d2", "d9", "d1", "d4"]}
# The same judgments by subtopic.
SUBTOPICS = {"q1": {"d1": {"1": 3, "2": 1}, "d2": {"1": 2}, "d3": {"1": 0}, "d4": {"2": 1}, "d5": {"3": 2}}}
# Judgments of measures that do not read JUDGMENTS.
SPECIAL = {
    "subtopics": SUBTOPICS,
    "preferences": JUDGMENTS,
    "samples": {"q1": {"top": {"d1": 3, "d3": 0}, "deep": {"d2": -1, "d4": 1, "d5": 2}}},
}
# A second value of each parameter, to show its effect.
OTHER = {
    "alpha": 0.9,
    "among": "retrieved",
    "b": 2,
    "beta": 2,
    "count": "pairs",
    "gain": "exp",
    "goal": 2,
    "hit": 2,
    "ideal": "retrieved",
    "judged_only": True,
    "k": 3,
    "miss": -1,
    "mult": 2,
    "noise": -0.5,
    "norm": "retrieved",
    "normalize": False,
    "p": 0.5,
    "points": "nearest",
    "recall": 0.5,
    "rel": 3,
    "residual": True,
    "scope": "both",
    "top": 3,
}


def parts(declared: "Declaration") -> tuple[str, str, str, dict[str, str]]:
    """Return the long name ("" if none), first sentence, body, and labelled paragraphs."""
    first, *paragraphs = declared.doc.split("\n\n")
    first = " ".join(first.split())
    said, colon, rest = first.partition(": ")
    if not colon or len(said) > _LONGEST_NAME:
        said, rest = "", first
    labelled: dict[str, str] = {}
    body = []
    for paragraph in paragraphs:
        found = re.split(r"(?m)^(Use|Beware|Source): ", paragraph)
        if len(found) == 1:
            body.append(paragraph)
        else:
            texts = (" ".join(text.split()) for text in found[2::2])
            labelled.update(zip(found[1::2], texts, strict=True))
    return said, rest[0].upper() + rest[1:], "\n\n".join(body), labelled


def title(declared: "Declaration") -> str:
    """Return the name, followed by the long name if the declaration has one."""
    said = parts(declared)[0]
    if not said or said == declared.name:
        return declared.name
    if said[1].islower():
        said = said[0].lower() + said[1:]
    return f"{declared.name}: {said}"


def example(measure: "Measure") -> "Measure":
    """Return the measure with common values of its required parameters."""
    needed = {"k": 5, "mult": 0.4, "recall": 0.1}
    return measure(**{word: needed[word] for word in measure.declaration.required})


def value(measure: "Measure") -> float:
    """Return the value of a measure for the example query."""
    return rankgauge.evaluate(judgments(measure), RUN, measure).mean()[str(measure)]


def judgments(measure: "Measure") -> "dict[str, Any]":
    """Return the example judgments that a measure reads."""
    return SPECIAL.get(measure.declaration.reads, JUDGMENTS)


def extent(declared: "Declaration") -> str:
    """Return the range of values as text."""
    low, high = declared.bounds
    if math.isinf(low):
        return "any number"
    return f"{low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"


def twins(declared: "Declaration") -> str:
    """Return the trec_eval names of a measure."""
    return ", ".join("`" + re.sub(r":[^}]*", "", name) + "`" for name in declared.trec)


def variants(measure: "Measure") -> "Iterator[tuple[str, Measure, float]]":
    """Yield the example, then one changed parameter at a time: (parameter, measure, value)."""
    start = example(measure)
    yield "", start, value(start)
    for word in start.declaration.words:
        changed = start(**{word: OTHER[word]})
        if changed != start:
            yield word, changed, value(changed)


def families() -> "Iterator[tuple[str, list[Measure]]]":
    """Yield each family, with its description, and its measures."""
    for module, family in groupby(rankgauge.list_measures(), _module):
        said = sys.modules[module].__doc__ or ""
        yield said.split("\n")[0].rstrip("."), list(family)


def _module(measure: "Measure") -> str:
    return measure.declaration.kernel.__module__


def table(heads: "Sequence[str]", rows: "Iterable[Sequence[str]]", right: int = -1) -> list[str]:
    """Return the lines of a Markdown table; the column `right` is right-aligned."""
    rules = ("--:" if place == right else "---" for place in range(len(heads)))
    return ["", *(f"| {' | '.join(row)} |" for row in (heads, rules, *rows)), ""]


def page(measure: "Measure") -> str:
    """Return the page of one measure."""
    declared = measure.declaration
    _, first, body, remarks = parts(declared)
    names = {"Use": "When to use it", "Beware": "Limitations", "Source": "Source"}
    lines = [f"# {title(declared)}", "", first, "", body, ""]
    for label, text in remarks.items():
        lines += [names[label], f": {text[0].upper()}{text[1:]}", ""]
    lines += ["## In short", *table(("", ""), facts(declared))]
    if declared.words:
        lines += ["## Parameters"]
        lines += table(
            ("parameter", "meaning", "values", "default"), (parameter(declared, word) for word in declared.words)
        )
        lines += [f"Full name: `{written(declared)}`.", ""]
    lines += [
        "## Example",
        "",
        "`d5` is judged but not retrieved, and `d9` is retrieved but not judged:",
        "",
        "```python",
        f"judgments = {judgments(measure)!r}".replace("'", '"'),
        f"run = {RUN!r}".replace("'", '"'),
        f'rankgauge.evaluate(judgments, run, "{example(measure)}")',
        "```",
    ]
    rows = ((f"`{changed}`", shown(number), f"`{word}`" if word else "") for word, changed, number in variants(measure))
    return "\n".join([*lines, *table(("measure", "value", "changed parameter"), rows, right=1)])


def facts(declared: "Declaration") -> "Iterator[tuple[str, str]]":
    """Yield the short properties of a measure: (label, text)."""
    means = {
        "arithmetic": "arithmetic",
        "geometric": "geometric, of values of at least 0.00001",
        "sum": "sum over queries",
    }
    reads = {
        "binary": "whether a document is relevant",
        "judged": "whether a document is judged",
        "grades": "the grade of a document",
        "preferences": "which of two documents is preferred",
        "samples": "grades, and the stratum that each document was sampled from",
        "subtopics": "the grades of a document for each subtopic",
    }
    undefined = {"skip": "excluded from the mean", "zero": "counted as 0 in the mean"}
    yield "Range", extent(declared)
    yield "Better", declared.better
    yield "Mean over queries", means[declared.mean]
    yield "Undefined values", undefined[declared.undefined]
    yield "Reads", reads[declared.reads]
    yield "In trec_eval", twins(declared) or "none"
    if declared.also or declared.shown:
        yield "Also written", ", ".join(f"`{name}`" for name in (*declared.also, *declared.shown))
    yield "Ties", f"{over_ties(declared)} ([ties](../../howto/ties.md))"
    for tool, called in elsewhere(declared):
        yield f"In {tool}".replace("In people", "Also called"), ", ".join(f"`{n}`" for n in called)


def parameter(declared: "Declaration", word: str) -> tuple[str, str, str, str]:
    """Return the row of one parameter."""
    default = declared.defaults.get(word)
    if word in declared.required:
        said = "required"
    else:
        said = f"`{str(default).replace('F', 'f')}`"
        if default is None:
            said = "all ranks" if word == "k" else "none"
    meaning = VOCABULARY[word].meaning.replace(", all if left out", "")
    return f"`{word}`", meaning, code(VOCABULARY[word].domain), said


def code(text: str) -> str:
    """Set the literals of a domain as code."""
    return re.sub(r"(\{[^}]*\}|2\^grade - 1|\bmin\(k,R\))", r"`\1`", text)


def written(declared: "Declaration") -> str:
    """Return the name with all its parameters."""
    inside = ", ".join(f"{word}=..." for word in declared.words if word != declared.at)
    at = f"@{declared.at}" if declared.at in declared.words else ""
    return declared.name + (f"({inside})" if inside else "") + at


def shown(number: float) -> str:
    """Format a value: whole numbers as they are, others with four decimals."""
    return f"{number:g}" if number == round(number) else f"{number:.4f}"


def overview() -> str:
    """Return the overview page."""
    lines = [
        "# Measures",
        "",
        "A measure is written `Name(parameter=value)@k`: `nDCG@10`, `P(rel=2)@5`, `RBP(p=0.95)`.",
        "Each has a page with its formula, range, use, limitations, and source. The last column is",
        "the name in trec_eval.",
        "",
    ]
    heads = ("measure", "definition", "range", "better", "in trec_eval")
    for family, found in families():
        lines += [f"## {family}", *table(heads, (entry(measure) for measure in found))]
    lines += ["## Parameters", "", "Parameters have the same meaning for all measures. Other values are an error."]
    words = VOCABULARY.values()
    rows = ((f"`{word.name}`", word.meaning, code(word.domain)) for word in words)
    lines += table(("parameter", "meaning", "values"), rows)
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *names(), "```", ""])


def entry(measure: "Measure") -> tuple[str, str, str, str, str]:
    """Return the row of one measure in the overview."""
    declared = measure.declaration
    link = f"[{example(measure)}]({measure.name}{SUFFIX})"
    first = parts(declared)[1].rstrip(".")
    return link, first, extent(declared), declared.better, twins(declared)


def names() -> list[str]:
    """Return the names of all measures."""
    return [measure.name for measure in rankgauge.list_measures()]


@functools.cache
def pages() -> dict[str, str]:
    """Return the text of each page by name; cached, since it evaluates every measure."""
    return {"index": overview(), **{m.name: page(m) for m in rankgauge.list_measures()}}


def write(app: "Sphinx") -> None:
    """Write the pages that changed, and delete those of removed measures."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {folder / f"{name}{SUFFIX}": text for name, text in pages().items()}
    for path in folder.glob(f"*{SUFFIX}"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Write the pages before Sphinx searches for sources."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
