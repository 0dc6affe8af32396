"""`generate_questions`: questions written by a language model for randomly drawn documents."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any

from rankgauge.core.arguments import integer
from rankgauge.core.files import write_atomically
from rankgauge.core.text import keep, many
from rankgauge.corpus import Collection, Document, Query
from rankgauge.errors import InputError
from rankgauge.evaluation.questions import STATEMENT
from rankgauge.llm import ChatModel, ChatRequest, ModelError, Reply, Usage
from rankgauge.llm.replies import fenced_messages, object_schema, prompt_texts, prompt_version
from rankgauge.production.question_sets import EvaluationQuestion
from rankgauge.production.sampling import group_questions, question_id
from rankgauge.rendering import Result, Table
from rankgauge.retrievers import BM25
from rankgauge.retrievers.protocol import index_documents, search

_PROMPTS = ("question", "answerable")
_LONGEST = 8_000  # characters of a document sent to the model
_MOST_TEXT = 300  # characters of a question
_RUN, _GRAM, _SHARE = 6, 3, 0.5
_TOKENS = {"question": 40, "answerable": 60}  # tokens of a reply, to estimate the cost
_LAST = "The data has ended. Reply with JSON only."
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ProposedQuestion:
    """A question that a model proposed for a document, with the reason if it was refused.

    Attributes:
        document: The document.
        text: The question; empty without one.
        refused: The reason for refusal; empty if accepted.
        missing: The code of a failed call, or empty.
        longest_run: The length of the longest word sequence shared with the document.
        overlap: The share of the word trigrams of the question that occur in the document.
        quote: The answering passage quoted by the model.
        rank: The rank of the document in a search for the question; None if not in the top k.
    """

    document: str
    text: str
    refused: str = ""
    missing: str = ""
    longest_run: int = 0
    overlap: float = 0.0
    quote: str = ""
    rank: int | None = None

    @property
    def accepted(self) -> bool:
        """Whether the question passed all filters."""
        return bool(self.text) and not self.refused and not self.missing


@dataclass(frozen=True)
class GeneratedQuestions(Result):
    """Accepted and refused questions of a model.

    Attributes:
        proposals: The proposal for each document, in the order of the draw.
        model: The name of the model.
        prompts: The prompt versions.
        seed: The seed of the draw.
        collection: The number of documents in the collection.
        k: The depth of the search.
        retriever: The name of the retriever.
        usage: Calls, tokens, and cost; estimated in a dry run.
        date: The date of the questions.
        dry_run: Whether no request was sent.
    """

    _attributes = "*"

    proposals: tuple[ProposedQuestion, ...]
    model: str
    prompts: Mapping[str, str]
    seed: int
    collection: int
    k: int
    retriever: str
    usage: Usage
    date: str
    dry_run: bool = False

    @property
    def questions(self) -> tuple[EvaluationQuestion, ...]:
        """Accepted questions, with document, model, and prompt."""
        return tuple(self._question(proposal) for proposal in self.proposals if proposal.accepted)

    def _question(self, proposal: ProposedQuestion) -> EvaluationQuestion:
        return EvaluationQuestion(
            question_id(proposal.text, "gen"),
            proposal.text,
            "generated",
            date=self.date,
            model=self.model,
            prompt=self.prompts["question"],
            document=proposal.document,
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write accepted questions as a question set and refused questions to a second file.

        Existing questions in the files are kept.

        Returns:
            The file of the refused questions, ``questions.refused.jsonl`` next to
            ``questions.jsonl``.
        """
        target = Path(path)
        beside = target.with_name(f"{target.stem}.refused{target.suffix}")
        for file, accepted in ((target, True), (beside, False)):
            lines = {}
            if file.exists():
                known = map(json.loads, filter(str.strip, file.read_text(encoding="utf-8").splitlines()))
                lines = {row["id"]: row for row in known}
            for proposal in self.proposals:
                if proposal.accepted == accepted and not proposal.missing:
                    row = {**asdict(self._question(proposal)), **asdict(proposal)}
                    if not accepted:
                        row["id"] = question_id(f"{proposal.document} {proposal.text}", "refused")
                    lines[row["id"]] = {k: v for k, v in row.items() if v not in {None, ""}}
            with write_atomically(file) as stream:
                stream.writelines(f"{json.dumps(row)}\n".encode() for row in lines.values())
        return beside

    def table(self) -> Table:
        """Return the numbers of accepted, refused (by reason), and missing questions."""
        accepted = [proposal for proposal in self.proposals if proposal.accepted]
        refused = Counter(proposal.refused for proposal in self.proposals if proposal.refused)
        missing = Counter(proposal.missing for proposal in self.proposals if proposal.missing)
        retrieved = sum(proposal.rank is not None for proposal in accepted)
        among = f"{retrieved} of {many(len(accepted), 'accepted question')}"
        done = not self.dry_run
        return Table(
            ("what", "number"),
            keep(
                ("documents drawn", len(self.proposals)),
                done and ("accepted", len(accepted)),
                *((f"refused: {why}", number) for why, number in refused.most_common()),
                *((f"missing: {why}", number) for why, number in missing.most_common()),
            ),
            title=f"{self.model}: generated questions{' (dry run)' * self.dry_run}",
            notes=keep(
                f"of {many(self.collection, 'document')}, seed {self.seed}",
                str(self.usage),
                done
                and f"{self.retriever} finds the document of {among} in the top {self.k}; the others are "
                "kept, since a filter would favor this retriever",
                done and f"WARNING: {STATEMENT}",
                missing and "to retry the missing questions, repeat the call",
            ),
        )

    _columns = " ".join(("proposals", *ProposedQuestion.__dataclass_fields__))

    def summary(self) -> str:
        """Return the number of accepted questions and the caveat on generated questions."""
        number = len(self.questions)
        return f"{self.model}: {many(number, 'question')} of {len(self.proposals)}; {STATEMENT}"


def generate_questions(
    collection: Any,
    n: int,
    model: ChatModel,
    *,
    seed: int = 0,
    known: Iterable[str] = (),
    k: int = 10,
    dry_run: bool = False,
    date: str | None = None,
) -> GeneratedQuestions:
    """Generate questions with a language model for n documents drawn at random.

    A proposal is refused, and kept with the reason, if the model returns no question; if the
    question is copied from the document (six consecutive words, or half of its word trigrams); if
    it repeats a known question or an earlier proposal; or if the model, in a second call, does not
    find it answerable from the document alone or quotes no passage. The rank of the document in a
    search for the question is recorded, but not used as a filter, which would favor the retriever.

    A failed call results in a missing question. With a cache, no call is repeated, even after an
    interruption. Generated questions differ from questions of users.

    Args:
        collection: The documents: any argument of `Collection.read`.
        n: The number of documents to draw, uniformly without replacement.
        model: The model, preferably with a cache.
        seed: The seed of the draw.
        known: Questions that must not be repeated.
        k: The depth of the search by BM25.
        dry_run: Whether to only estimate calls, tokens, and cost, without sending requests.
        date: The ISO date of the questions; if None, today (UTC).

    Raises:
        InputError: If the collection has fewer than n documents with text.
        ModelError: If every call failed.
    """
    integer("n", n)
    integer("k", k)
    texts = prompt_texts("rankgauge.production", _PROMPTS)
    documents = collection if isinstance(collection, Collection) else Collection.read(collection)
    drawn = _draw(documents, n, seed)
    asked = [_request(texts["question"], document, question=None) for document in drawn]
    before = model.usage()
    generated = GeneratedQuestions(
        (),
        str(model.settings["model"]),
        {name: prompt_version(name, text) for name, text in texts.items()},
        seed,
        len(documents.documents),
        k,
        "BM25",
        Usage(),
        datetime.now(UTC).date().isoformat() if date is None else date,
        dry_run,
    )
    if dry_run:
        # Questions are unknown in a dry run: estimate second calls with one of typical length.
        usage = model.estimate(asked, [_TOKENS["question"]] * n)
        second = [_request(texts["answerable"], document, question="x" * 60) for document in drawn]
        usage += model.estimate(second, [_TOKENS["answerable"]] * n)
        return replace(generated, proposals=tuple(ProposedQuestion(document.id, "") for document in drawn), usage=usage)
    replies = model.complete_all(asked)
    proposals = _filtered(drawn, replies, list(known))
    open_ = [place for place, proposal in enumerate(proposals) if proposal.accepted]
    checks = [_request(texts["answerable"], drawn[place], question=proposals[place].text) for place in open_]
    for place, reply in zip(open_, model.complete_all(checks), strict=True):
        proposals[place] = _answerable(proposals[place], drawn[place], reply)
    failures = [reply for reply in replies if isinstance(reply, ModelError)]
    if len(failures) == n:
        raise failures[0]
    return replace(generated, proposals=tuple(_ranked(proposals, documents, k)), usage=model.usage() - before)


def _draw(collection: Collection, n: int, seed: int) -> list[Document]:
    """Draw documents with text uniformly without replacement, independently of their order."""
    order = sorted(collection.documents)
    random.Random(f"generate:{seed}").shuffle(order)  # noqa: S311 - a seed, not a secret
    documents = (collection.documents[name] for name in order)
    drawn = list(islice((document for document in documents if document.full_text.strip()), n))
    if len(drawn) < n:
        raise InputError(
            f"cannot draw {many(n, 'document')}: the collection has {len(drawn)} with text",
            where="collection",
            fix=f"generate at most {len(drawn)} questions",
        )
    return drawn


def _request(prompt: str, document: Document, *, question: str | None) -> ChatRequest:
    text = {"type": "string"}
    parts = {"The document": _shown(document)}
    properties: dict[str, Any] = {"question": text}
    if question is not None:
        parts["The question"] = question
        properties = {"answerable": {"type": "string", "enum": ["yes", "no"]}, "quote": text}
    return ChatRequest(fenced_messages(prompt, parts, _LAST), object_schema(**properties))


def _shown(document: Document) -> str:
    return document.full_text[:_LONGEST]


def _filtered(
    drawn: Sequence[Document], replies: Sequence[Reply | ModelError], known: list[str]
) -> list[ProposedQuestion]:
    """Return the proposals; refuse those that are empty, too long, copied, or repeated."""
    proposals = []
    for document, reply in zip(drawn, replies, strict=True):
        if isinstance(reply, ModelError):
            proposals.append(ProposedQuestion(document.id, "", missing=reply.code))
            continue
        text = " ".join(str(reply.data["question"]).split())
        run, overlap = _copied(text, _shown(document))
        refused = ""
        if not text:
            refused = "no question"
        elif len(text) > _MOST_TEXT:
            refused = "too long"
        elif run >= _RUN or overlap >= _SHARE:
            refused = "copied from the document"
        elif len(group_questions({text: 1}, known)) == len(known):
            refused = "repeats a question"
        else:
            known.append(text)
        proposals.append(ProposedQuestion(document.id, text, refused, longest_run=run, overlap=overlap))
    return proposals


def _copied(question: str, document: str) -> tuple[int, float]:
    """Return the length of the longest common word sequence and the share of common trigrams."""
    own, theirs = (_WORD.findall(text.casefold()) for text in (question, document))
    longest = SequenceMatcher(None, own, theirs, autojunk=False).find_longest_match()
    grams = [tuple(own[place : place + _GRAM]) for place in range(len(own) - _GRAM + 1)]
    common = {tuple(theirs[place : place + _GRAM]) for place in range(len(theirs) - _GRAM + 1)}
    return longest.size, sum(gram in common for gram in grams) / max(len(grams), 1)


def _answerable(proposal: ProposedQuestion, document: Document, reply: Reply | ModelError) -> ProposedQuestion:
    if isinstance(reply, ModelError):
        return replace(proposal, missing=reply.code)
    quote = " ".join(reply.data["quote"].split())
    plain = " ".join(_shown(document).split())
    if reply.data["answerable"] == "no":
        return replace(proposal, refused="not answerable from the document alone")
    if not quote or quote.casefold() not in plain.casefold():
        return replace(proposal, refused="no passage of the document answers it", quote=quote)
    return replace(proposal, quote=quote)


def _ranked(proposals: Sequence[ProposedQuestion], collection: Collection, k: int) -> list[ProposedQuestion]:
    """Return the proposals with the rank of their document in a search by BM25."""
    asked = [Query(str(place), proposal.text) for place, proposal in enumerate(proposals) if proposal.accepted]
    ranked = list(proposals)
    if asked:
        retriever = BM25()
        index_documents(retriever, collection.documents.values())
        for query, hits in zip(asked, search(retriever, asked, k), strict=True):
            proposal, ids = ranked[int(query.id)], list(hits.ids)
            rank = ids.index(proposal.document) + 1 if proposal.document in ids else None
            ranked[int(query.id)] = replace(proposal, rank=rank)
    return ranked
