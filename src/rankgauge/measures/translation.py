"""Translation of measure names in other tools to our names, by the tables of `spellings`.

The result is text, which the parser reads as any other name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from rankgauge.core.grammar import LONGEST, ParsedName, plain_key, split_name
from rankgauge.core.grouping import group_values
from rankgauge.core.text import either
from rankgauge.errors import UnknownName
from rankgauge.measures.declaration import DECLARED, NAMES, TREC, Declaration
from rankgauge.measures.spellings import FAMILIES, FLAGS, IMPLIED, NICKNAMES, TOOLS, Spelling

DIALECTS = tuple(name for name in TOOLS if name != "people")
# Profiles with the measure names of a tool: those of trec_eval-9 are those of trec_eval.
_VERSION = re.compile(r"(trec_eval)-(?:9|10)(?:\.[0-9.]*)?|(mteb)-(?:ignore-identical-ids|skip-first-result)")
_SIMILARITY = re.compile(r"(?:[\w-]+_)?(?:cosine|cos_sim|dot|dot_score|euclidean|manhattan|maxsim)[-_](?=[A-Za-z])")
_LEVEL = re.compile(r"-l([0-9]+)$")
_PERSISTENCE = re.compile(r"rbp\.([0-9]+)")
_TOP_K = re.compile(r"top[-_ ]?([0-9]+)[-_ ]([A-Za-z][A-Za-z _-]*)", re.IGNORECASE)
_AT = re.compile(r"(.*?[^ _])(?:[ _]at[ _]|[ _@-])([0-9]+)", re.IGNORECASE)
_CUT = re.compile(r"(.*?[^0-9.@ _-])[.@ _-]?([0-9]+)")
_LIST = re.compile(r"([A-Za-z0-9]\w*)\.([0-9.,=p-]*)")
_NAUC = re.compile(r"nauc[_ ].*", re.IGNORECASE)
# Names with fewer letters get no suggestions; further letters are not compared.
_SHORTEST, _LONGEST_KEY = 3, 60
# Smallest similarity of a suggestion, and its largest difference from the best one.
_NEAR, _SPREAD = 0.6, 0.15


class ToolName(NamedTuple):
    """Name of a measure in one tool."""

    tool: str
    name: str  # with a cut-off if it has one
    means: str  # our measure; empty if there is none
    why: str  # why there is none, or when the numbers are equal


def translate(text: str, dialect: str | None = None) -> tuple[str, ...] | None:
    """Return our names for a name in another tool; None if no tool has it.

    Example:
        >>> translate("cosine_ndcg@10"), translate("map@100", "sentence-transformers")
        (('nDCG@10',), ('AP(norm=min(k,R))@100',))
    """
    tool = None if dialect is None else _tool(dialect)
    if len(text) > LONGEST:
        return None
    text = text.strip().replace("\N{GREEK SMALL LETTER ALPHA}", "alpha")
    own = tool in {"trec_eval", "pytrec_eval"}
    if own or tool is None:
        if text in NICKNAMES:
            return tuple(name for part in NICKNAMES[text] for name in _expand_list(part, own=True) or (part,))
        many = _expand_list(text, own=own)
        if many is not None:
            return many
    similarity = _SIMILARITY.match(text)
    if similarity and tool in {None, "sentence-transformers"}:
        # Only sentence-transformers has names with a similarity.
        rest = translate(text[similarity.end() :], "sentence-transformers")
        if rest is not None:
            return rest
    for spelled in _readings(text):
        translated = _translated(text, spelled, tool)
        if translated is not None:
            return (translated,)
    return None


def _tool(dialect: Any) -> str:
    version = _VERSION.fullmatch(dialect) if isinstance(dialect, str) else None
    name = version[version.lastindex or 0] if version else dialect
    if name not in DIALECTS:
        raise UnknownName(f"dialect={dialect!r:.60} is not valid", fix=f"choose one of: {', '.join(DIALECTS)}")
    return name


def _expand_list(text: str, *, own: bool) -> tuple[str, ...] | None:
    """Return the names in a list or a family: ``P.5,10`` is ``P_5`` and ``P_10``."""
    listed = _LIST.fullmatch(text)
    name, values = (listed[1], listed[2]) if listed else (text, FAMILIES.get(text, ""))
    # P alone is our measure without its cut-off, unless the dialect is that of trec_eval.
    if not values or (not listed and not own and plain_key(name) in NAMES):
        return None
    special = _with_parameter(name, values)
    if special is not None:
        return (special,)
    parts = values.split(",")
    if name == "iprec_at_recall":
        return tuple(f"IPrec@{level}" for level in parts)
    return tuple(f"{name}_{cut}" for cut in parts) if f"{name}_" in TREC else None


def _with_parameter(name: str, values: str) -> str | None:
    """Return our name if the part after the dot is a parameter, not a list of cut-offs."""
    match name:
        # ndcg.1=3.5,2=9 sets the gain of each grade.
        case "G" | "dcg" | "ndcg" | "ndcg_rel" | "Rndcg" if "=" in values:
            ours = TREC[name][0] if name in TREC else NAMES[plain_key(name)][0]
            return f"{ours}(gain={{{values.replace('=', ':')}}})"
        # rbp.p=0.8 of trec_eval 10, but not rbp.95 of ranx.
        case "rbp" if values.startswith("p="):
            return f"RBP({values})"
        # The parameter of set_F.4 is the square of beta.
        case "set_F":
            with suppress(ValueError):
                values = f"{math.sqrt(float(values)):.15g}"
            return f"SetF(beta={values})"
        # Weights of hits, other retrieved documents, and misses. The last weight must be 0: it is for
        # documents neither relevant nor retrieved, which are in neither run nor judgments.
        case "utility" if re.fullmatch(r"[^,]*,[^,]*,[^,]*,[-0.]*", values):
            hit, noise, miss, _ = values.split(",")
            return f"Utility(hit={hit},miss={miss},noise={noise})"
    return None


def _readings(text: str) -> Iterator[ParsedName]:
    """Yield the possible parses of a name, the simplest first."""
    if _NAUC.fullmatch(text):
        yield ParsedName("nauc", {}, None)
    level = _LEVEL.search(text)
    params = {"rel": level[1]} if level else {}
    text = text[: level.start()] if level else text
    persistence = _PERSISTENCE.fullmatch(text)
    if persistence:
        yield ParsedName("rbp", {"p": f"0.{persistence[1]}", **params}, None)
    top = _TOP_K.fullmatch(text)
    if top:
        yield ParsedName(f"top-k {top[2]}", params, top[1])
    try:
        plain = split_name(text)
    except UnknownName:
        return
    yield plain._replace(params={**plain.params, **params})
    at = _AT.fullmatch(text)
    if at and plain.at is None:
        yield ParsedName(at[1], params, at[2])


def _translated(text: str, spelled: ParsedName, tool: str | None) -> str | None:
    """Return our name for a parsed name; None if it is in no table."""
    key, params = plain_key(spelled.name), dict(spelled.params)
    for (of, word), names in FLAGS.items():
        if key == of and word in params:
            return _compose_name(names[params.pop(word).lower() == "true"], params, spelled.at)
    # Remove parameters that have the only supported value.
    for (of, word), implied in IMPLIED.items():
        if key == of and word in params and params.pop(word) != implied.value:
            raise UnknownName(f"{text!r} is not supported: {implied.why}", fix=implied.instead)
    # A parameter may make it another measure: numret(rel).
    key = next((f"{key}({word})" for word in params if f"{key}({word})" in _table()), key)
    if tool == "ranx" and key == "rbp" and spelled.at is not None and "p" not in params:
        return f"RBP(p=0.{spelled.at})"
    # Without a dialect, our own names take precedence.
    if tool is None and plain_key(spelled.name) in NAMES and "(" not in key:
        return _compose_name(spelled.name, params, spelled.at)
    rows = {name: row for name, row in _table().get(key, {}).items() if tool is None or name == tool}
    if not rows:
        return None
    row, *others = {row.means: row for row in rows.values()}.values()
    if others:
        raise _ambiguous(text, spelled, rows)
    if not row.means:
        raise UnknownName(f"{text!r} is not supported: {row.why}", fix=row.instead)
    bare = row.bare and spelled.at is None and "k" not in params and "top_k" not in params
    return _compose_name(row.bare if bare and tool is not None else row.means, params, spelled.at)


def _compose_name(means: str, params: Mapping[str, str], at: str | None) -> str:
    name, own, cut = split_name(means)
    at = cut if at is None else at
    inside = ",".join(f"{word}={value}" for word, value in {**own, **params}.items())
    return name + (f"({inside})" if inside else "") + (f"@{at}" if at is not None else "")


def _ambiguous(text: str, spelled: ParsedName, rows: Mapping[str, Spelling]) -> UnknownName:
    by_meaning = group_values(
        (_compose_name(row.means, spelled.params, spelled.at), "everyday usage" if tool == "people" else tool)
        for tool, row in rows.items()
        if row.means
    )
    message = ", ".join(f"{name} in {' and '.join(tools)}" for name, tools in by_meaning.items())
    dialect = next(tool for tools in by_meaning.values() for tool in tools if tool in DIALECTS)
    return UnknownName(
        f"{text!r} is ambiguous: {message}",
        fix=f'write the intended one, or name the tool: parse(..., dialect="{dialect}")',
    )


@cache
def _table() -> Mapping[str, Mapping[str, Spelling]]:
    """Return the spellings by key and tool."""
    table: dict[str, dict[str, Spelling]] = {}
    for tool in TOOLS.values():
        for spelling in tool.spellings:
            table.setdefault(plain_key(spelling.name), {})[tool.name] = spelling
    return table


def no_such_name(spelled: ParsedName) -> UnknownName:
    """Return the error for an unknown name, with our names for the nearest known ones.

    Example:
        >>> print(no_such_name(split_name("nDGC@10")))
        unknown measure 'nDGC'
        fix: did you mean nDCG@10, RnDCG, or alpha_nDCG@10?
    """
    got = spelled.name
    known = {
        key: _compose_name(name, {word: str(value) for word, value in params.items()}, None)
        for key, (name, params) in NAMES.items()
    }
    for key, tools in _table().items():
        for row in tools.values():
            if row.means:
                known.setdefault(key, row.means)
    for twin, (name, *_) in TREC.items():
        known.setdefault(plain_key(twin), name)
    at = _CUT.fullmatch(got)
    cut = spelled.at or (at and at[2])
    near = _nearest(plain_key(at[1] if at else got), known)
    shown = [f"{name}@{cut}" if cut and _takes_cut(name) else name for name in near]
    fix = f"did you mean {either(shown)}?" if near else ("rankgauge measures lists all; write Name@k, such as nDCG@10")
    return UnknownName(f"unknown measure {got[:60]!r}", fix=fix)


def _nearest(key: str, known: Mapping[str, str]) -> list[str]:
    """Return the nearest measures without duplicates; none if the name is too short."""
    import difflib

    key = key[:_LONGEST_KEY]
    if len(key) < _SHORTEST:
        return []
    close = difflib.get_close_matches(key, known, n=6, cutoff=_NEAR)
    ratios = [difflib.SequenceMatcher(a=name, b=key).ratio() for name in close]
    near = [name for name, ratio in zip(close, ratios, strict=True) if ratio > ratios[0] - _SPREAD]
    return list(dict.fromkeys(known[name] for name in near))[:3]


def _takes_cut(name: str) -> bool:
    declared = _declared(name)
    return declared.at in declared.words


def _declared(name: str) -> Declaration:
    return DECLARED[name.partition("(")[0]]


def tool_names(tools: Iterable[str] = tuple(TOOLS)) -> Iterator[ToolName]:
    """Yield all names in the tables, by tool.

    Example:
        >>> [row.means for row in tool_names(["ranx"]) if row.name == "ndcg_burges@k"]
        ['nDCG(gain=exp)@k']
    """
    for name in tools:
        tool = TOOLS[name]
        has_cut = "{k}" in tool.shown
        for row in tool.spellings:
            # Parentheses contain a condition, not a part of the name.
            cut = row.cut and row.means and "(" not in row.name and _takes_cut(row.means)
            shown = row.name
            if cut and has_cut:
                shown = tool.shown.format(name=row.name, k=_declared(row.means).at)
            needed = cut and (has_cut or _declared(row.means).at in _declared(row.means).required)
            means = f"{row.means}@{_declared(row.means).at}" if needed else row.means
            if has_cut or not row.bare:
                yield ToolName(name, shown, means, row.why)
            if row.bare:
                yield ToolName(name, row.name, row.bare, row.why)
