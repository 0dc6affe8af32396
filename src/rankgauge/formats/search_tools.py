"""Read and write JSON of Elasticsearch, OpenSearch, Quepid, and the Rated Ranking Evaluator.

Documents are recognized by keys that a mapping of query ids does not have: lists of objects under
``requests``, ``judgmentRatings``, ``queries``, or ``topics``, or ``details`` with hits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rankgauge.core.ids import id_bytes, show_id
from rankgauge.core.pair_table import PairTable
from rankgauge.core.text import inflect, many
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout, number_text, read_number
from rankgauge.formats.frames import short
from rankgauge.formats.rows import PairInput, by_query, text_pairs

_SHOWN = 3
# Same output as json.dumps, which creates a new encoder per call with non-default options.
json_text = json.JSONEncoder(ensure_ascii=False).encode


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
                continue
            try:
                pairs.append((doc, read_number(number.encode()) if isinstance(number, str) else number))
            except ValueError:
                raise InputError(
                    f"{short(number)} is not a number",
                    where=f"{self.name}, query '{_shown(query)}', document '{_shown(doc)}'",
                    fix="write every rating as a number",
                ) from None

    def place(self, rated: Mapping[str, Any], key: str, where: str) -> Any:
        """Return the document id under a key, and check the index of Elasticsearch or OpenSearch."""
        doc, index = _id(rated, key, where), rated.get("_index")
        if index is None:
            return doc
        other = self.indices.setdefault(doc, str(index))
        if other != str(index):
            raise InputError(
                f"document '{_shown(doc)}' is in the index {other!r} and in {str(index)!r}: two "
                "documents have the same id",
                where=where,
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


def shaped(value: Any, origin: PairInput) -> Shaped | None:
    """Read judgments or a run from the JSON of a known tool; return None for other documents."""
    if not isinstance(value, dict):
        return None
    value = value["rank_eval"] if isinstance(value.get("rank_eval"), dict) else value
    layout, name, *_ = origin
    result = Shaped(name)
    details = value.get("details")
    if isinstance(details, dict) and details and all(isinstance(d, dict) and "hits" in d for d in details.values()):
        _response(value, layout, result)
        return result.with_notes()
    for tool in _TOOLS:
        lists = tool.lists(value, name)
        if not lists:
            continue
        if layout is RUN:
            raise FormatError(
                f"this is {tool.words}, which has judgments; expected {layout.words}",
                path=name,
                fix="pass the judgments first, then the run",
            )
        tool.add(lists, result)
        return result.with_notes()
    # Responses of searches have no query ids.
    hits, several = value.get("hits"), "responses" in value
    if _listed(value.get("responses"), "hits") or (isinstance(hits, dict) and isinstance(hits.get("hits"), list)):
        raise FormatError(
            f"this is a response of {'_msearch' if several else '_search'}, which does not name the "
            f"quer{'ies' if several else 'y'} it answers; expected {layout.words}",
            path=name,
            fix='use {"q1": {"d1": 12.5}}, made from the _id and _score of the hits of each query',
        )
    return None


class _Tool(NamedTuple):
    """A tool whose files have lists of queries with ratings."""

    words: str  # description of a file
    entry: str  # name of an entry, for messages
    query: tuple[str, ...]  # keys of the query
    document: str  # key of the document
    # Returns the lists of queries in a file; empty for other files.
    lists: Callable[[Mapping[str, Any], str], list[Any]]
    rated: bool = True  # whether every query has ratings
    rating: str = "rating"  # key of the rating

    def add(self, lists: list[Any], result: Shaped) -> None:
        """Add the ratings of the queries in a list."""
        if len(lists) > 1:
            raise FormatError(f"there are {len(lists)} judgment lists", path=result.name, fix="keep one of them")
        entries = lists[0]
        if isinstance(entries, dict):
            entries = [{self.query[0]: query, "ratings": rated} for query, rated in entries.items()]
        for number, entry in enumerate(_objects(entries, result.name), start=1):
            where = f"{result.name}, {self.entry.format(number)}"
            query = _id(entry, next((key for key in self.query if key in entry), self.query[-1]), where)
            rated = _part(entry, "ratings", where) if self.rated else entry.get("ratings") or {}
            if not isinstance(rated, dict):
                docs, at = _objects(rated, where), f"{result.name}, query '{_shown(query)}'"
                rated = [(result.place(doc, self.document, at), doc.get(self.rating)) for doc in docs]
            result.add(query, rated.items() if isinstance(rated, dict) else rated)


# ---- Elasticsearch and OpenSearch: _rank_eval


def _response(value: Mapping[str, Any], layout: Layout, result: Shaped) -> None:
    failed = value.get("failures")
    if isinstance(failed, dict) and failed:
        some = ", ".join(repr(query) for query in list(failed)[:_SHOWN])
        result.notes.append(
            f"WARNING: {result.name}: {many(len(failed), 'query')} failed and "
            f"{inflect(len(failed), 'has', 'have')} no hits: {some}"
        )
    rankings: dict[Any, list[tuple[Any, Any]]] = {}
    for query, detail in value["details"].items():
        where = f"{result.name}, query '{_shown(query)}'"
        ranking = rankings[query] = []
        for rated in _objects(detail["hits"], where):
            (hit,) = _objects([_part(rated, "hit", where)], where)
            number = rated.get("rating") if layout is JUDGMENTS else hit.get("_score")
            ranking.append((result.place(hit, "_id", where), number))
    if layout is JUDGMENTS:
        for query, ranking in rankings.items():
            result.add(query, ranking)
        result.notes.append(
            f"{result.name}: a response of _rank_eval has only ratings of retrieved documents: "
            "recall, AP, and nDCG are too high; pass the request"
        )
        return
    # Searches sorted by a field have no scores.
    if any(score is None for ranking in rankings.values() for _, score in ranking):
        result.notes.append(f"{result.name}: hits without a score: ranked in the order given")
        rankings = {
            query: [(doc, -rank) for rank, (doc, _) in enumerate(ranking, start=1)]
            for query, ranking in rankings.items()
        }
    result.rankings.update(rankings)


# ---- OpenSearch: judgment lists of the Search Relevance Workbench


def _lists(value: Mapping[str, Any], _: str) -> list[Any]:
    """Return the judgment lists in an import or in a search response for stored lists."""
    ratings = value.get("judgmentRatings")
    rated = list(ratings.values()) if isinstance(ratings, dict) else ratings
    if isinstance(rated, list) and rated and all(isinstance(entry, list | dict) for entry in rated):
        # Otherwise `judgmentRatings` is a query id, mapped to documents and numbers.
        return [ratings] if isinstance(rated[0], dict) == isinstance(ratings, list) else []
    hits = value.get("hits")
    inner = hits.get("hits") if isinstance(hits, dict) else []
    inner = inner if isinstance(inner, list) else []
    sources = [hit.get("_source") for hit in inner if isinstance(hit, dict)]
    return [source["judgmentRatings"] for source in sources if isinstance(source, dict) and "judgmentRatings" in source]


# ---- the Rated Ranking Evaluator


def _groups(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield objects with queries and relevant documents: topics, groups, or single queries."""
    for topic in (value, *_dicts(value.get("topics"))):
        for group in (topic, *_dicts(topic.get("query_groups"))):
            if "relevant_documents" in group:
                yield group
            else:
                asked = _dicts(group.get("queries"))
                yield from (query for query in asked if "relevant_documents" in query)


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _rre(value: Mapping[str, Any], name: str) -> list[Any]:
    """Return the ratings of the Rated Ranking Evaluator; queries of a group share them."""
    holder = value.get("query_placeholder")
    holder = holder if isinstance(holder, str) else "$query"
    entries = []
    for number, group in enumerate(_groups(value), start=1):
        where = f"{name}, group {number}"
        gains = list(_gains(group["relevant_documents"], where))
        # Queries that differ only in their template are the same query.
        members = _objects(group.get("queries", [group]), where)
        queries = dict.fromkeys(_id(_part(member, "placeholders", where), holder, where) for member in members)
        entries += [{"query": query, "ratings": gains} for query in queries]
    return [entries] if entries else []


def _gains(value: Any, where: str) -> Iterator[Mapping[str, Any]]:
    """Yield documents with gains, from a mapping by document, a mapping by gain, or a list."""
    if not isinstance(value, dict):
        yield from _objects(value, where)
        return
    for key, entry in value.items():
        if isinstance(entry, list):
            yield from ({"document_id": doc, "gain": key} for doc in entry)
        else:
            yield {"document_id": key, "gain": _part(entry, "gain", where)}


def _under(key: str) -> Callable[[Mapping[str, Any], str], list[Any]]:
    return lambda value, _: [value[key]] if _listed(value.get(key), "ratings") else []


_TOOLS: tuple[_Tool, ...] = (
    _Tool("a request of _rank_eval", "request {}", ("id",), "_id", _under("requests")),
    _Tool("an OpenSearch judgment list", "entry {} of judgmentRatings", ("query",), "docId", _lists),
    _Tool("a Quepid case", "query {}", ("query", "query_text"), "doc_id", _under("queries"), rated=False),
    _Tool("ratings of the Rated Ranking Evaluator", "query {}", ("query",), "document_id", _rre, rating="gain"),
)


def _listed(value: Any, key: str) -> bool:
    """Return whether this is a list of objects, the first of which has this key."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value) and key in value[0]


def _objects(value: Any, where: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InputError(
            f"got {short(value)}, expected a list of objects", where=where, fix='use a list: [{"_id": "d1", ...}, ...]'
        )
    return value


def _part(value: Any, key: Any, where: str) -> Any:
    if not isinstance(value, dict) or value.get(key) is None:
        raise InputError(f"there is no {key!r} in {short(value)}", where=where, fix=f"add {key!r} to each")
    return value[key]


def _id(value: Any, key: str, where: str) -> str | int:
    identifier = _part(value, key, where)
    if isinstance(identifier, str | int) and not isinstance(identifier, bool):
        return identifier
    raise InputError(
        f"got {short(identifier)} for {key!r}, expected an id", where=where, fix="use text or a whole number"
    )


def _shown(key: Any) -> str:
    return show_id(id_bytes(key)) if isinstance(key, str | int) else repr(key)


# ---- writers


def rank_eval_request(tables: Iterable[PairTable], layout: Layout, *_: object) -> Iterator[str]:
    """Write the body of a ``_rank_eval`` request."""
    # Elasticsearch requires a query, which only the user knows.
    query = '"id": %s, "request": {"query": {"match_all": {}}}'
    rating = '    {"_index": "documents", "_id": %s, "rating": %s}'
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
        ratings = ",\n".join([rating % (json_text(doc), number_text(v, layout)) for doc, v in docs])
        yield f'{between}  {{{query % json_text(name)}, "ratings": [\n{ratings}\n  ]}}'
        between = ",\n"
