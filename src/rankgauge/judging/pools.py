"""`build_pool`: the documents to judge for each question, and their sources."""

from __future__ import annotations

import json
import random as randomness
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

from rankgauge.core.arguments import integer
from rankgauge.core.ids import id_bytes, show_id
from rankgauge.core.text import keep, many, some
from rankgauge.corpus import Collection, Document as Text, Query
from rankgauge.data import Run, cut
from rankgauge.data.id_spelling import matches, named, way_of
from rankgauge.data.subsets import only
from rankgauge.errors import InputError, MismatchError
from rankgauge.judging.events import Candidate, Document, Question, Source
from rankgauge.judging.models import ModelRanking, rank_documents
from rankgauge.judging.project import JudgingProject
from rankgauge.judging.questions import advice
from rankgauge.llm import ChatModel
from rankgauge.rendering import Result, Table
from rankgauge.retrievers.protocol import index_documents, search

_DEEPER = 3  # times k: depth of the rankings that a language model reorders
_AT_ONCE = 64  # questions per call of a retriever
_COMPARED = 200_000  # ids compared to detect different spellings
_MODEL_WARNING = (
    "a language model chose some of the documents that are judged: a document that looks "
    "relevant need not be relevant or correct"
)

# Question to documents with scores, best first.
_Ranked: TypeAlias = Mapping[str, Sequence[tuple[str, float | None]]]
_Sources: TypeAlias = dict[tuple[str, str], list[Source]]


@dataclass(frozen=True, slots=True)
class PoolSource:
    """Contribution of a source to the pool.

    Attributes:
        name: The name of the run, retriever, or model.
        kind: ``run``, ``search``, ``model``, ``author``, ``random``, or ``import``.
        questions: Number of questions for which the source has candidates.
        total: Number of question-document pairs from the source.
        unique: Number of pairs from no other source.
        new: Number of pairs added by this call.
    """

    name: str
    kind: str
    questions: int
    total: int
    unique: int
    new: int


@dataclass(frozen=True)
class PoolReport(Result):
    """Candidates of a judging project, and those added by a call of `build_pool`.

    Attributes:
        k: The number of documents taken from each ranking.
        questions: The number of questions.
        empty: Questions without candidates.
        documents: The number of question-document pairs in the pool.
        new: The number of pairs added by this call: the documents to judge.
        per_question: The smallest, median, and largest number of candidates of a question,
            excluding questions without candidates.
        sources: The contribution of each source, including earlier calls.
        missing: Ranked documents that are not in the collection and thus not in the pool.
        drawn: Questions for which random documents had already been drawn.
        ranking: The ranking by the language model; None without a model.
    """

    _attributes = "*"

    k: int
    questions: int
    empty: tuple[str, ...]
    documents: int
    new: int
    per_question: tuple[int, float, int]
    sources: tuple[PoolSource, ...]
    missing: tuple[str, ...]
    drawn: int
    ranking: ModelRanking | None = None

    def table(self) -> Table:
        """Return one row for each source, under the numbers of new and all documents."""
        low, middle, high = self.per_question
        pooled, empty = (many(n, "question") for n in (self.questions - len(self.empty), len(self.empty)))
        failed = {} if self.ranking is None else self.ranking.failed
        question, why = next(iter(failed.items()), ("", ""))
        return Table(
            ("source", "kind", "questions", "documents", "unique", "new"),
            tuple(
                (source.name, source.kind, source.questions, source.total, source.unique, source.new)
                for source in self.sources
            ),
            title=f"{many(self.new, 'new document')} to judge; {self.documents} in all for {pooled}"
            + (f"; without candidates: {empty}" if self.empty else ""),
            notes=keep(
                self.sources and f"documents per question: {low} to {high}, median {middle:g}",
                self.empty
                and f"{empty} without candidates: {some(self.empty)}; add "
                "runs that have them, or search the collection: --bm25",
                self.missing
                and f"{many(len(self.missing), 'document')} skipped because the collection lacks them "
                f"({some(self.missing)}): pass the collection that was searched",
                self.drawn
                and f"random documents were already drawn for {many(self.drawn, 'question')}; no more "
                "were drawn, so that their inclusion probabilities remain valid",
                self.ranking and f"language model: {self.ranking.usage}",
                failed and f"not ranked by the language model: {many(len(failed), 'question')} ({question}: {why})",
                pool_warning(source.kind for source in self.sources),
                advice(self.questions) and f"{many(self.questions, 'question')}: {advice(self.questions)}",
            ),
            shortened=frozenset({0}),
        )


def pool_warning(kinds: Iterable[str]) -> str:
    """Return the warning for pools built with a language model, else an empty string.

    Args:
        kinds: The kinds of sources in the pool.
    """
    return _MODEL_WARNING if "model" in kinds else ""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Rankings of one source."""

    name: str
    kind: str
    ranked: _Ranked

    def top(self, k: int) -> Iterator[tuple[str, str, Source]]:
        """Yield the first k documents of each question with their source."""
        for question, documents in self.ranked.items():
            for rank, (document, score) in enumerate(documents[:k], 1):
                yield question, document, Source(self.name, self.kind, rank, score)


def build_pool(
    project: JudgingProject,
    collection: Any,
    runs: Mapping[str, Any] | Iterable[Any] = (),
    *,
    retrievers: Mapping[str, Any] | None = None,
    model: ChatModel | None = None,
    k: int = 10,
    random: int = 0,
    seed: int | None = None,
) -> PoolReport:
    """Add candidates to each question: the union of the top k of all runs and searches.

    Documents that a question names as answers are also candidates. A language model, if given,
    ranks the top 3k of all runs and searches, and its top k are candidates. Random documents are
    drawn once for each question, without replacement from outside the pool; they serve to estimate
    the number of relevant documents missing from the pool, and their inclusion probability
    n / (documents outside) is recorded. Repeating the call adds nothing.

    Args:
        project: The project; it must have questions.
        collection: A `Collection`, or any argument of `Collection.load`. Texts of candidates are
            copied into the project.
        runs: Runs by name, or named runs.
        retrievers: Retrievers by name, such as ``{"bm25": BM25()}``; they search the collection.
        model: A language model that ranks the retrieved documents; see `rank_documents`.
        k: The number of documents of each ranking that become candidates.
        random: The number of documents to draw from outside the pool for each question.
        seed: The seed of the draw; if None, the seed of the project.

    Raises:
        InputError: If the project has no questions, no runs or retrievers are given, an answering
            document is not in the collection, or the model has no documents to rank.
        MismatchError: If a run shares no question with the project or no document with the
            collection.

    Example:
        >>> import tempfile
        >>> from rankgauge.judging import load_questions
        >>> from rankgauge.sample import sample_path
        >>> project = JudgingProject.create(tempfile.mkdtemp() + "/judging.db")
        >>> project.add_questions(load_questions(sample_path("queries.jsonl")))
        >>> folder = sample_path("qrels.txt").parent
        >>> build_pool(project, folder, [sample_path("runs/bm25.run")], k=5).new
        145
        >>> build_pool(project, folder, [sample_path("runs/bm25.run")], k=5).new
        0
    """
    integer("k", k)
    integer("random", random, least=0)
    questions = project.questions
    if not questions:
        raise InputError(
            "there are no questions to find candidates for",
            where=project.where,
            fix=f"add some: rankgauge judge questions FILE{project.flag}",
        )
    texts = collection if isinstance(collection, Collection) else Collection.read(collection)
    depth = k if model is None else k * _DEEPER
    named = [Run.of(run, name=str(name)) for name, run in runs.items()] if isinstance(runs, Mapping) else runs
    rankings = [_of_run(Run.of(run), questions, depth) for run in named]
    for name, retriever in (retrievers or {}).items():
        rankings.append(_Ranking(name, "search", _search(retriever, texts, questions, depth)))
    ranking = None
    if model is not None:
        ranking = rank_documents(model, questions, _documents_to_rank(rankings, texts, depth))
        ranked = {name: [(document, None) for document in ids] for name, ids in ranking.ranked.items()}
        rankings.append(_Ranking(str(model.settings["model"]), "model", ranked))
    sources: _Sources = defaultdict(list, {pair: [Source("author", "author")] for pair in _answers(questions, texts)})
    missing = _add(sources, rankings, texts, k)
    if not sources and not random:
        raise InputError(
            "no run or search found a document"
            if rankings
            else "there are no runs or searches to take candidates from",
            where=project.where,
            fix="pass runs, search the collection (--bm25, --dense), or draw documents (--random)"
            if texts.documents
            else "add documents (.md, .txt, or corpus.jsonl) to the collection, or pass runs",
        )
    before = _stored(project)
    # Random documents are drawn once: a later draw would have a different probability.
    drawn = {
        candidate.question
        for candidate in before
        if random and any(source.kind == "random" for source in candidate.sources)
    }
    if random:
        pools: dict[str, set[str]] = {name: set() for name in questions if name not in drawn}
        for question, document in (*((candidate.question, candidate.document) for candidate in before), *sources):
            if question in pools:
                pools[question].add(document)
        seed = project.settings.seed if seed is None else seed
        for question, document, source in _draw(pools, texts, random, seed):
            sources[question, document].append(source)
    _store(project, sources, texts)
    report = _report(project, before, k=k, missing=missing, drawn=len(drawn & questions.keys()))
    return replace(report, ranking=ranking)


def _of_run(run: Run, questions: Mapping[str, Question], k: int) -> _Ranking:
    ours = only(run, questions)
    if not len(ours):
        raise _mismatch(
            f"run {run.name} has no question of the project", list(run.query_index), map(id_bytes, questions)
        )
    top = cut(ours, k, duplicates="best")
    return _Ranking(run.name, "run", {name: tuple(top[name].items()) for name in top})


def _mismatch(what: str, theirs: Sequence[bytes], ours: Iterable[bytes]) -> MismatchError:
    """Return an error for ids that do not match, with the change that would make them match."""
    mine = list(islice(ours, _COMPARED))
    way = way_of(theirs, mine)
    fix = "use the same ids in both (check the columns, prefixes, leading zeros)"
    if way is not None:
        pairs = list(matches(way, theirs, mine))
        their_id, our_id = map(show_id, pairs[0])
        fix = f"write ids the same way: '{their_id}' is '{our_id}' {named(way, pairs)}"
    return MismatchError(
        f"{what}: its ids are {some(map(show_id, theirs[:3]))}, expected ids such as {some(map(show_id, mine[:3]))}",
        fix=fix,
    )


def _search(retriever: Any, texts: Collection, questions: Mapping[str, Question], k: int) -> _Ranked:
    # One object, so that a retriever does not index the same documents twice.
    index_documents(retriever, texts.documents.values())
    queries = [Query(question.id, question.text) for question in questions.values()]
    ranked: dict[str, Sequence[tuple[str, float | None]]] = {}
    for start in range(0, len(queries), _AT_ONCE):
        batch = queries[start : start + _AT_ONCE]
        for query, hits in zip(batch, search(retriever, batch, k), strict=True):
            ranked[query.id] = list(zip(hits.ids, hits.scores, strict=True))
    return ranked


def _documents_to_rank(rankings: Iterable[_Ranking], texts: Collection, depth: int) -> dict[str, list[Document]]:
    """Return the documents for the model to rank, by question, in order of their best rank."""
    ranks: dict[str, dict[str, int]] = defaultdict(dict)
    for ranking in rankings:
        for question, document, source in ranking.top(depth):
            if document in texts.documents:
                ranks[question][document] = min(ranks[question].get(document, depth), source.rank or depth)
    if not ranks:
        raise InputError(
            "there are no rankings for the language model to reorder",
            where="model",
            fix="pass runs, or search the collection: --run RUN, --bm25",
        )
    return {
        question: [
            _document(texts.documents[name]) for _, name in sorted((rank, name) for name, rank in best_ranks.items())
        ]
        for question, best_ranks in ranks.items()
    }


def _add(sources: _Sources, rankings: Iterable[_Ranking], texts: Collection, k: int) -> tuple[str, ...]:
    """Add the first k documents of each ranking; return those missing from the collection."""
    missing: dict[str, None] = {}
    for ranking in rankings:
        top = list(ranking.top(k))
        ranked = {document for _, document, _ in top}
        known = {document for document in ranked if document in texts.documents}
        if ranked and not known:
            raise _mismatch(
                f"{ranking.kind} {ranking.name} has no document of the collection",
                sorted(map(id_bytes, ranked)),
                map(id_bytes, texts.documents),
            )
        for question, document, source in top:
            if document in known:
                sources[question, document].append(source)
            else:
                missing[document] = None
    return tuple(missing)


def _answers(questions: Mapping[str, Question], texts: Collection) -> Iterator[tuple[str, str]]:
    for question in questions.values():
        for document in question.answers:
            if document not in texts.documents:
                raise InputError(
                    f"question {question.id!r} names the answering document {document!r:.60}, "
                    "which is not in the collection",
                    where="questions",
                    fix="use the id of a document in the collection, or another collection",
                )
            yield question.id, document


def _draw(
    pools: Mapping[str, set[str]], texts: Collection, number: int, seed: int
) -> Iterator[tuple[str, str, Source]]:
    """Draw documents from outside each pool without replacement and with equal probability."""
    documents = list(texts.documents)
    for question, pool in pools.items():
        rng = randomness.Random(f"{seed}:{question}")  # noqa: S311 - a seed, not a secret
        outside = len(documents) - sum(document in texts.documents for document in pool)
        wanted = min(number, outside)
        taken: dict[str, None] = {}
        while len(taken) < wanted:
            document = documents[rng.randrange(len(documents))]
            if document not in pool:
                taken[document] = None
        for document in taken:
            yield question, document, Source("random", "random", probability=wanted / outside)


def _stored(project: JudgingProject) -> list[Candidate]:
    with project.reading() as stored:
        return stored.candidates()


def _store(project: JudgingProject, sources: Mapping[tuple[str, str], Sequence[Source]], texts: Collection) -> None:
    wanted = {document for _, document in sources}
    # Existing documents keep the text that was judged.
    new = wanted - set(project.documents(wanted))
    project.add_candidates(
        (Candidate(question, document, tuple(s)) for (question, document), s in sources.items()),
        (_document(texts.documents[name]) for name in sorted(new)),
    )


def _document(text: Text) -> Document:
    fields = {"title": text.title, "text": text.text, **text.fields}
    return Document(
        text.id,
        {
            str(name): value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            for name, value in fields.items()
            if value not in ("", None)
        },
    )


def _report(
    project: JudgingProject, before: Iterable[Candidate], *, k: int, missing: tuple[str, ...], drawn: int
) -> PoolReport:
    questions = project.questions
    old = {(candidate.question, candidate.document) for candidate in before}
    candidates = [candidate for candidate in _stored(project) if candidate.question in questions]
    sizes = Counter(candidate.question for candidate in candidates)
    sources: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        for key in {(source.kind, source.name) for source in candidate.sources}:
            sources[key].append(candidate)
    return PoolReport(
        k=k,
        questions=len(questions),
        empty=tuple(name for name in questions if name not in sizes),
        documents=len(candidates),
        new=sum((candidate.question, candidate.document) not in old for candidate in candidates),
        per_question=(
            (min(sizes.values()), statistics.median(sizes.values()), max(sizes.values())) if sizes else (0, 0.0, 0)
        ),
        sources=tuple(
            PoolSource(
                name,
                kind,
                questions=len({candidate.question for candidate in pairs}),
                total=len(pairs),
                unique=sum(len({(s.kind, s.name) for s in candidate.sources}) == 1 for candidate in pairs),
                new=sum((candidate.question, candidate.document) not in old for candidate in pairs),
            )
            for (kind, name), pairs in sorted(sources.items())
        ),
        missing=missing,
        drawn=drawn,
    )
