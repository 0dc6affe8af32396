"""Read and write JSON of Elasticsearch, OpenSearch, Quepid, and the Rated Ranking Evaluator.

Documents are recognized by keys that a mapping of query ids does not have: lists of objects under
``requests``, ``judgmentRatings``, ``queries``, or ``topics``, or ``details`` with hits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankgauge.core.ids import id_bytes, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import inflect, many
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.frames import short
from rankgauge.formats.numbers import number_text, read_number
from rankgauge.formats.rows import by_query, text_pairs

_SHOWN = 3
_INDEX = "documents"
_json = json.JSONEncoder(ensure_ascii=False).encode


@dataclass
class Shaped:
    """Judgments or rankings found in a JSON document."""

    name: str  # name of the file, for messages
    # Query to pairs of document and number, in input order.
    rankings: dict[Any, list[tuple[Any, Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # notes on how the document was read
    unrated: int = 0  # number of documents without a rating
    indices: dict[Any, str] = field(default_factory=dict)  # document to its index

    def add(self, query: Any, rated: Iterable[tuple[Any, Any]]) -> None:
        """Add the documents of a query with their numbers; those without a number are unjudged."""
        pairs = self.rankings.setdefault(query, [])
        for doc, number in rated:
            if number is None or number == "":
                self.unrated += 1
            else:
                pairs.append((doc, self._number(number, query, doc)))

    def _number(self, number: Any, query: Any, doc: Any) -> Any:
        if not isinstance(number, str):
            return number
        try:
            return read_number(number.encode())
        except ValueError:
            raise InputError(
                f"{short(number)} is not a number",
                where=f"{self.name}, query '{_shown(query)}', document '{_shown(doc)}'",
                fix="write every rating as a number",
            ) from None

    def place(self, hit: Mapping[str, Any], query: Any) -> Any:
        """Return the document id of an Elasticsearch or OpenSearch hit, and check its index."""
        doc, index = _id(hit, "_id", f"{self.name}, query '{_shown(query)}'"), hit.get("_index")
        if index is None:
            return doc
        other = self.indices.setdefault(doc, str(index))
        if other != str(index):
            raise InputError(
                f"document '{_shown(doc)}' is in the index {other!r} and in {str(index)!r}: two "
                "documents have the same id",
                where=f"{self.name}, query '{_shown(query)}'",
                fix="write the index into the ids, of judgments and run alike: jq '(.. | objects | "
                'select(has("_index") and has("_id"))) |= (._id = ._index + "/" + ._id)\' FILE',
            )
        return doc

    def with_notes(self) -> Shaped:
        """Append notes on the counts and return self."""
        names = sorted(set(self.indices.values()))
        if len(names) > 1:
            some = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if names[_SHOWN:] else "")
            self.notes.append(f"{self.name}: documents of {len(names)} indices ({some})")
        if self.unrated:
            unrated = many(self.unrated, "document")
            self.notes.append(f"{self.name}: {unrated} without a rating: not judged")
        return self


def shaped(value: Any, layout: Layout, name: str) -> Shaped | None:
    """Read judgments or a run from the JSON of a known tool; return None for other documents."""
    if not isinstance(value, dict):
        return None
    value = value["rank_eval"] if isinstance(value.get("rank_eval"), dict) else value
    for known, reader, judgments in _READERS:
        if not known(value):
            continue
        if judgments and layout is RUN:
            raise FormatError(
                f"this is {judgments}, which has judgments; expected {layout.words}",
                path=name,
                fix="pass the judgments first, then the run",
            )
        return reader(value, layout, Shaped(name)).with_notes()
    return None


# ---- Elasticsearch and OpenSearch: _rank_eval


def _request(value: Mapping[str, Any], _: Layout, found: Shaped) -> Shaped:
    for number, one in enumerate(value["requests"], start=1):
        where = f"{found.name}, request {number}"
        query = _id(one, "id", where)
        rated = _objects(_part(one, "ratings", where), where)
        found.add(query, [(found.place(doc, query), doc.get("rating")) for doc in rated])
    return found


def _is_response(value: Mapping[str, Any]) -> bool:
    details = value.get("details")
    return (
        isinstance(details, dict)
        and bool(details)
        and all(isinstance(one, dict) and "hits" in one for one in details.values())
    )


def _response(value: Mapping[str, Any], layout: Layout, found: Shaped) -> Shaped:
    hits = {
        query: _objects(one["hits"], f"{found.name}, query '{_shown(query)}'")
        for query, one in value["details"].items()
    }
    failed = value.get("failures")
    if isinstance(failed, dict) and failed:
        some = ", ".join(repr(query) for query in list(failed)[:_SHOWN])
        found.notes.append(
            f"WARNING: {found.name}: {many(len(failed), 'query')} failed and "
            f"{inflect(len(failed), 'has', 'have')} no hits: {some}"
        )
    if layout is JUDGMENTS:
        for query, rated in hits.items():
            found.add(query, [(_hit(one, query, found), one.get("rating")) for one in rated])
        found.notes.append(
            f"{found.name}: a response of _rank_eval has only ratings of retrieved documents: "
            "recall, AP, and nDCG are too high; pass the request"
        )
        return found
    _ranked(
        {
            query: [(_hit(one, query, found), one["hit"].get("_score")) for one in ranking]
            for query, ranking in hits.items()
        },
        found,
    )
    return found


def _hit(one: Mapping[str, Any], query: Any, found: Shaped) -> Any:
    where = f"{found.name}, query '{_shown(query)}'"
    hit = _part(one, "hit", where)
    return found.place(_objects([hit], where)[0], query)


def _ranked(rankings: dict[Any, list[tuple[Any, Any]]], found: Shaped) -> None:
    """Add rankings; searches sorted by a field have no scores, so use their order."""
    if any(score is None for ranking in rankings.values() for _, score in ranking):
        found.notes.append(f"{found.name}: hits without a score: ranked in the order given")
        rankings = {
            query: [(doc, -rank) for rank, (doc, _) in enumerate(ranking, start=1)]
            for query, ranking in rankings.items()
        }
    found.rankings.update(rankings)


# ---- OpenSearch: judgment lists of the Search Relevance Workbench


def _lists(value: Mapping[str, Any]) -> list[Any]:
    """Return the judgment lists in an import or in a search response for stored lists."""
    given = value.get("judgmentRatings")
    rated = list(given.values()) if isinstance(given, dict) else given
    if isinstance(rated, list) and rated and all(isinstance(one, list | dict) for one in rated):
        # Otherwise `judgmentRatings` is a query id, mapped to documents and numbers.
        return [given] if isinstance(rated[0], dict) == isinstance(given, list) else []
    hits = value.get("hits")
    inner = hits.get("hits") if isinstance(hits, dict) else []
    inner = inner if isinstance(inner, list) else []
    sources = [one.get("_source") for one in inner if isinstance(one, dict)]
    return [one["judgmentRatings"] for one in sources if isinstance(one, dict) and "judgmentRatings" in one]


def _judgment_list(value: Mapping[str, Any], _: Layout, found: Shaped) -> Shaped:
    lists = _lists(value)
    if len(lists) > 1:
        raise FormatError(f"there are {len(lists)} judgment lists", path=found.name, fix="keep one of them")
    given = lists[0]
    if isinstance(given, dict):
        given = [{"query": query, "ratings": rated} for query, rated in given.items()]
    for number, one in enumerate(_objects(given, found.name), start=1):
        where = f"{found.name}, entry {number} of judgmentRatings"
        rated = _objects(_part(one, "ratings", where), where)
        query = _id(one, "query", where)
        found.add(query, [(_id(doc, "docId", where), doc.get("rating")) for doc in rated])
    return found


# ---- Quepid, and the Rated Ranking Evaluator


def _case(value: Mapping[str, Any], _: Layout, found: Shaped) -> Shaped:
    for number, one in enumerate(value["queries"], start=1):
        where = f"{found.name}, query {number}"
        query = _id(one, "query" if "query" in one else "query_text", where)
        rated = one.get("ratings") or {}
        if not isinstance(rated, dict):
            rated = {_id(doc, "doc_id", where): doc.get("rating") for doc in _objects(rated, where)}
        found.add(query, rated.items())
    return found


def _groups(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield objects with queries and relevant documents: topics, groups, or single queries."""
    for topic in (value, *_dicts(value.get("topics"))):
        for group in (topic, *_dicts(topic.get("query_groups"))):
            if "relevant_documents" in group:
                yield group
            else:
                asked = _dicts(group.get("queries"))
                yield from (one for one in asked if "relevant_documents" in one)


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _rated(value: Mapping[str, Any], _: Layout, found: Shaped) -> Shaped:
    holder = value.get("query_placeholder")
    holder = holder if isinstance(holder, str) else "$query"
    for number, group in enumerate(_groups(value), start=1):
        where = f"{found.name}, group {number}"
        gains = list(_gains(group["relevant_documents"], where))
        asked = group.get("queries", [group])
        # Queries that differ only in their template are the same query.
        values = [_part(one, "placeholders", where) for one in _objects(asked, where)]
        for query in dict.fromkeys(_id(one, holder, where) for one in values):
            found.add(query, gains)
    return found


def _gains(given: Any, where: str) -> Iterator[tuple[Any, Any]]:
    """Yield documents with gains, from a mapping by document, a mapping by gain, or a list."""
    if isinstance(given, dict):
        for key, one in given.items():
            if isinstance(one, list):
                yield from ((_id({"document": doc}, "document", where), key) for doc in one)
            else:
                yield key, _part(one, "gain", where)
        return
    for one in _objects(given, where):
        yield _id(one, "document_id", where), one.get("gain")


# ---- formats without query ids


def _is_search(value: Mapping[str, Any]) -> bool:
    hits = value.get("hits")
    return _listed(value.get("responses"), "hits") or (isinstance(hits, dict) and isinstance(hits.get("hits"), list))


def _search(value: Mapping[str, Any], layout: Layout, found: Shaped) -> Shaped:
    several = "responses" in value
    raise FormatError(
        f"this is a response of {'_msearch' if several else '_search'}, which does not name the "
        f"quer{'ies' if several else 'y'} it answers; expected {layout.words}",
        path=found.name,
        fix='use {"q1": {"d1": 12.5}}, made from the _id and _score of the hits of each query',
    )


_Reader = Callable[[Mapping[str, Any], Layout, Shaped], Shaped]
# Test for the document, its reader, and its description if it contains only judgments.
_READERS: tuple[tuple[Callable[[Mapping[str, Any]], bool], _Reader, str], ...] = (
    (lambda value: _listed(value.get("requests"), "ratings"), _request, "a request of _rank_eval"),
    (_is_response, _response, ""),
    (lambda value: bool(_lists(value)), _judgment_list, "an OpenSearch judgment list"),
    (lambda value: _listed(value.get("queries"), "ratings"), _case, "a Quepid case"),
    (lambda value: any(_groups(value)), _rated, "ratings of the Rated Ranking Evaluator"),
    (_is_search, _search, ""),
)


def _listed(value: Any, key: str) -> bool:
    """Return whether this is a list of objects, the first of which has this key."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value) and key in value[0]


def _objects(value: Any, where: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InputError(
            f"got {short(value)}, expected a list of objects", where=where, fix='use a list: [{"_id": "d1", ...}, ...]'
        )
    return value


def _part(value: Any, key: Any, where: str) -> Any:
    if not isinstance(value, dict) or value.get(key) is None:
        raise InputError(f"there is no {key!r} in {short(value)}", where=where, fix=f"add {key!r} to each")
    return value[key]


def _id(value: Any, key: str, where: str) -> str | int:
    found = _part(value, key, where)
    if isinstance(found, str | int) and not isinstance(found, bool):
        return found
    raise InputError(f"got {short(found)} for {key!r}, expected an id", where=where, fix="use text or a whole number")


def _shown(key: Any) -> str:
    return show_id(id_bytes(key)) if isinstance(key, str | int) else repr(key)


# ---- writers


def rank_eval_request(tables: Iterable[PairTable], layout: Layout, *_: object) -> Iterator[str]:
    """Write the body of a ``_rank_eval`` request."""
    # Elasticsearch requires a query, which only the user knows.
    query = '"id": %s, "request": {"query": {"match_all": {}}}'
    rating = f'    {{"_index": "{_INDEX}", "_id": %s, "rating": %s}}'
    yield '{"requests": [\n'
    yield from _rated_lists(tables, layout, query, rating)
    yield '\n], "metric": {"dcg": {"k": 10, "normalize": true}}}\n'


def opensearch_judgments(tables: Iterable[PairTable], layout: Layout, *_: object) -> Iterator[str]:
    """Write a judgment list for import into the OpenSearch workbench, with ratings as text."""
    yield '{"name": "judgments", "description": "", "type": "IMPORT_JUDGMENT",\n'
    yield '"judgmentRatings": [\n'
    yield from _rated_lists(tables, layout, '"query": %s', '    {"docId": %s, "rating": "%s"}')
    yield "\n]}\n"


def _rated_lists(tables: Iterable[PairTable], layout: Layout, query: str, rating: str) -> Iterator[str]:
    between = ""
    for name, table, rows in by_query(tables, whole=True):
        docs = text_pairs(table, rows)
        ratings = ",\n".join([rating % (_json(doc), number_text(v, layout)) for doc, v in docs])
        yield f'{between}  {{{query % _json(name)}, "ratings": [\n{ratings}\n  ]}}'
        between = ",\n"
