"""The list of measures, and the description of a single measure."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator
from itertools import groupby

from rankgauge.core.grammar import EXAMPLES, VOCABULARY, plain_key
from rankgauge.core.text import keep, lower_first
from rankgauge.measures.compiled import COMPILED_MEASURES
from rankgauge.measures.declaration import NAMES, Declaration
from rankgauge.measures.measure import Measure, list_measures as all_measures, parse_all
from rankgauge.measures.translation import tool_names
from rankgauge.production.metrics import METRICS
from rankgauge.rendering.tables import Table, wrapped


def measures_table() -> Table:
    """Return all measures of rankings and of answers, and all online metrics, one per row.

    Example:
        >>> measures_table().columns
        ('measure', 'description', 'better', 'in trec_eval', 'computed by')
    """
    inputs = {"": "evaluate", "verdicts": "answers evaluate", "answers": "answers evaluate"}
    return Table(
        ("measure", "description", "better", "in trec_eval", "computed by"),
        (
            *(
                (str(example(m)), summary(m.declaration), m.declaration.better, _trec_names(m.declaration), command)
                for reads, command in inputs.items()
                for m in all_measures(reads)
            ),
            *(
                (m.name, m.definition.format(minutes=10, similarity=0.5), m.better or "neither", "", "logs metrics")
                for m in METRICS.values()
            ),
        ),
        notes=(
            "rankgauge measures NAME explains one; write Name(param=value)@k; rarely used ones are shown with --full",
            "in trec_eval: the name of the measure with the same values there",
        ),
    )


def describe(name: str | Measure, *, full: bool = True) -> str:
    """Describe a measure or online metric: definition, range, parameters, name in trec_eval, and source.

    Args:
        name: Name of a measure, with or without parameters.
        full: Whether to show details, sources, and the names of other tools.

    Raises:
        UnknownName: For an unknown measure; the message suggests similar names.

    Example:
        >>> describe("RR").startswith("RR: Reciprocal rank of the first relevant document")
        True
    """
    if name in METRICS:
        row = next(row for row in measures_table().records() if row["measure"] == name)
        return (
            f"{name}: {row['description']}\n\nBetter: {row['better']}.\n"
            f"Computed by: rankgauge logs metrics LOG -m {name}\n"
        )
    return "\n".join(_described(_declared(name).declaration, full=full)) + "\n"


def _declared(name: str | Measure) -> Measure:
    if isinstance(name, str):
        # A measure without its cut-off, such as "hit rate", cannot be parsed.
        known = {plain_key(m.name): m.name for m in all_measures()}
        key = plain_key(name)
        if key in known or key in NAMES:
            return Measure(known.get(key) or NAMES[key][0])
    return Measure(parse_all(name)[0].name)


def example(measure: Measure) -> Measure:
    """Return the measure with example values for its required parameters."""
    return measure(**{word: EXAMPLES[word] for word in measure.declaration.required})


def summary(declared: Declaration) -> str:
    """Return the first sentence of a measure's documentation."""
    text = declared.doc.split("\n\n", 1)[0].replace("\n", " ")
    head, colon, rest = text.partition(": ")
    # "Precision: the share ...": drop the name, which is shown next to it.
    text = (rest if colon and len(head) < 40 else text).rstrip(".")
    return lower_first(text) if text[1:2].islower() else text


def _described(declared: Declaration, *, full: bool) -> Iterator[str]:
    first, *paragraphs = declared.doc.replace("``", "").split("\n\n")
    yield from wrapped(f"{declared.name}: {first}")
    for paragraph in paragraphs:
        # Show the formula and when to use the measure; the rest is detail.
        parts = re.split(r"\n(?=(?:Use|Beware|Source): )", paragraph)
        shown = [part for part in parts if full or part.startswith(("$$", "Use:", "Beware:"))]
        if shown:
            yield ""
        for part in shown:
            yield from [part] if part.startswith("$$") else wrapped(part)
    yield ""
    low, high = declared.bounds
    top = "unbounded" if math.isinf(high) else f"{high:g}"
    extent = "any number" if math.isinf(low) else f"{low:g} to {top}"
    done = "excluded from the mean" if declared.undefined == "skip" else "counted as 0 in the mean"
    also = ", ".join((*declared.also, *declared.shown))
    others = list(elsewhere(declared)) if full else []
    lines = keep(
        (f"Range: {extent}; better: {declared.better}; mean: {declared.mean}.", 0),
        (f"Undefined values are {done}.", 0),
        full and (f"Equal scores: {over_ties(declared)}.", 0),
        full and (_implementations(declared), 0),
        declared.words and ("Parameters:", 0),
        *((f"  {word:<12} {_parameter(declared, word, full=full)}", 15) for word in declared.words),
        full and also and (f"Also written: {also}.", 0),
        (f"Name in trec_eval: {_trec_names(declared) or 'none'}.", 0)
        if full
        else ("Details, source, names in other tools: --full", 0),
        others and ("Names elsewhere:", 0),
        *((f"  {tool:<22} {', '.join(names)}", 25) for tool, names in others),
    )
    for line, indent in lines:
        yield from wrapped(line, indent=" " * indent)


def _parameter(declared: Declaration, word: str, *, full: bool) -> str:
    default = declared.defaults.get(word)
    how = "needed" if word in declared.required else f"default {default}"
    if default is None and word in declared.defaults:
        how = "default: all" if word == "k" else "optional"
    domain = f"; {VOCABULARY[word].domain}" if full else ""
    return f"{VOCABULARY[word].meaning} ({how}{domain})"


def over_ties(declared: Declaration) -> str:
    """Describe how a measure is averaged over all orders of equal scores.

    Example:
        >>> over_ties(Measure("SetP").declaration)
        'their order never changes the value'
    """
    if declared.tie_mean == "same":
        return "their order never changes the value"
    ends = _upset(declared)
    for (word, value), traits in declared.variants.items():
        if not traits.get("monotone", True) and declared.monotone:
            ends = f"; with {word}={value}{_upset(declared._replace(**traits))[1:]}"
    if declared.tie_mean:
        but = "".join(
            f", but with {word}={value}"
            for (word, value), traits in declared.variants.items()
            if traits.get("tie_mean") == ""
        )
        return f"the mean over all orders is exact{but}{ends}"
    return f"no exact mean over all orders; it can be estimated from random orders{ends}"


def _implementations(declared: Declaration) -> str:
    """Describe which optional implementations exist besides the kernel."""
    from rankgauge.distributed.sql import SQL_MEASURES
    from rankgauge.explanation.graded import WEIGHTS

    optional: dict[str, Container[str]] = {
        "compiled core": COMPILED_MEASURES,
        "SQL": SQL_MEASURES,
        "steps of means over ties": WEIGHTS,
    }
    existing = [name for name, names in optional.items() if declared.name in names]
    missing = [name for name in optional if name not in existing]
    return f"Optional parts: {', '.join(existing) or 'none'}; missing: {', '.join(missing) or 'none'}."


def _upset(declared: Declaration) -> str:
    if declared.monotone:
        return ""
    return f"; a better order may have a {'higher' if declared.better == 'lower' else 'lower'} value"


def elsewhere(declared: Declaration) -> Iterator[tuple[str, list[str]]]:
    """Yield names of the measure in other tools and common spellings.

    Example:
        >>> dict(elsewhere(Measure("SetR").declaration))["torchmetrics"]
        ['RetrievalRecall', 'retrieval_recall']
    """
    for tool, rows in groupby(tool_names(), key=lambda row: row.tool):
        named = []
        for row in rows:
            if re.split(r"[(@]", row.means)[0] == declared.name:
                plain = row.means in {declared.name, f"{declared.name}@{declared.at}"}
                named.append(row.name if plain else f"{row.name} = {row.means}")
        if named and tool != "pytrec_eval":
            yield tool, named


def _trec_names(declared: Declaration) -> str:
    return ", ".join(name.replace(":.2f}", "}") for name in declared.trec)
