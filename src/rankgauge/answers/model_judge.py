"""Language models as judges, and as extractors of claims and nuggets.

Prompts are the files in ``prompts``; the hash of a file is its version. Texts are fenced by a
mark that occurs in none of them. Items omitted from a reply are requested again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rankgauge.answers.judges import SUPPORT, MissingVerdict, share_content, verdict_on_blank
from rankgauge.answers.store import VerdictStore, store_in_batches
from rankgauge.answers.verdicts import LABELS, AnswerRecord, Claim, ClaimSet, Context, Item, Verdict, quote_occurs
from rankgauge.core.abstention import abstains
from rankgauge.core.arguments import integer
from rankgauge.core.grouping import group_values
from rankgauge.core.progress import report
from rankgauge.core.text import many
from rankgauge.llm import ChatRequest, ModelError, Reply, Usage
from rankgauge.llm.replies import InvalidReply, fenced_messages, object_schema, prompt_texts, prompt_version, read_reply
from rankgauge.rendering import Result, Table

if TYPE_CHECKING:
    from rankgauge.llm import ChatModel

# For each relation: the prompt, and the names of the listed items and of the text.
_PROMPTS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    dict.fromkeys(SUPPORT, ("support", "claim", "text"))
    | {
        "nugget-answer": ("nugget", "fact", "answer"),
        "answer-question": ("claim-relevance", "claim", "question"),
        "context-question": ("context-relevance", "question", "passage"),
        "abstention": ("abstention", "question", "text"),
        "answerability": ("answerability", "question", "passages"),
        "criterion": ("criterion", "criterion", "text"),
    }
)
_FILES = (*dict.fromkeys(name for name, _, _ in _PROMPTS.values()), "claims", "nuggets")
# Relations with roles swapped (the subject is the text, the target is listed): one item per call.
_SWAPPED = frozenset({"abstention", "context-question", "criterion"})
# Labels that require a quote.
_NEEDS_QUOTE = frozenset({"supported", "contradicted", "partly supported", "relevant", "answerable"})
_ELLIPSIS = re.compile(r"\s*\[?(?:\.{3}|…)\]?\s*")
_CONVERSATION = "The conversation before the question, one turn in each line"
# Failures that may not occur in a call with fewer items.
_RETRIED_IN_PARTS = frozenset({"invalid", "truncated", "empty", "refused", "no verdict"})
_PER_VERDICT, _PER_REPLY, _PER_CLAIMS = 80, 20, 400  # estimated tokens per reply
_STRING = {"type": "string"}


def _verdicts_schema(ids: Mapping[str, Any], label: Mapping[str, Any], most: int) -> dict[str, Any]:
    entry = object_schema(id=ids, quote=_STRING, reason=_STRING, label=label)
    return object_schema(verdicts={"type": "array", "items": entry, "minItems": 1, "maxItems": most})


class ModelJudge:
    """Judge that uses a language model.

    Up to `batch` claims about the same text are judged in one call, each with an id. Items that the
    reply omits, or judges twice with different labels, are sent again in calls of a third of the
    size; if a call with a single item fails, its verdict is missing. A verdict that a text supports
    or contradicts a claim, or that a context is relevant, needs a quote that occurs in the text;
    without such a quote, the label becomes "not stated" or "not relevant", with ``quoted=False``.
    If the quote shares no term or number with the claim, the verdict is missing: the quote can be
    an instruction in the text, or a paraphrase.

    A verdict depends only on the texts of its item and on the turns before the question, because
    systems share it. Blank texts are judged without a call.

    Whether the collection can answer a question is judged by passages. If a context has the answer,
    the question is answerable. If no context has it, other documents may, so the verdict is
    missing without `search`. With `search`, which finds passages in the collection for each
    question, the verdict is "not answerable" if neither these passages nor the contexts have the
    answer. The model does not see the reference answer, which may not come from the collection.

    Args:
        model: The model; with a cache, repeated calls are free.
        batch: The largest number of claims in a call.
        longest: The largest number of characters of an item; longer items get no verdict.
        prompts: Texts that replace default prompts, by file name without ``.md``.
        search: Function that finds documents of the collection for a question. In a conversation,
            the question is preceded by the earlier turns of the user, one per line.

    Raises:
        UnknownName: If a prompt name is unknown.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        batch: int = 8,
        longest: int = 200_000,
        prompts: Mapping[str, str] | None = None,
        search: Callable[[str], Iterable[Context]] | None = None,
    ) -> None:
        self.model = model
        self.name = str(model.settings["model"])
        self._batch = integer("batch", batch)
        self._longest = integer("longest", longest)
        self._prompts = prompt_texts("rankgauge.answers", _FILES, prompts or {})
        self._search = search
        self._served: set[str] = set()

    def __repr__(self) -> str:
        return f"<ModelJudge {self.name}>"

    def version(self, relation: str) -> str:
        """Return the name of the prompt and the hash of its text."""
        name = _PROMPTS[relation][0]
        version = prompt_version(name, self._prompts[name])
        searched = relation == "answerability" and self._search is not None
        return f"{version}+search" if searched else version

    def other_models(self) -> tuple[str, ...]:
        """Return model names reported by the server that differ from the requested name.

        Names that contain the requested name, such as that of a dated version, are excluded.
        """
        own = str(self.model.settings["model"]).casefold()
        return tuple(sorted(name for name in self._served if own not in name.casefold() and name))

    def estimate(self, items: Sequence[Item], replicate: int = 0) -> Usage:
        """Return the calls, tokens, and cost of judging items, without repeated requests.

        Args:
            items: Different items.
            replicate: The number of the repetition.
        """
        complete = map(self._with_passages, items)
        batches = self._batches(item for item in complete if self._without_call(item) is None)
        return self.model.estimate(
            (self._request(batch, replicate) for batch in batches),
            (_PER_REPLY + _PER_VERDICT * len(batch) for batch in batches),
        )

    def judge(self, items: Sequence[Item], replicate: int = 0) -> Generator[Verdict | MissingVerdict, None, None]:
        """Yield a verdict on each item, or the reason why it is missing, as replies arrive.

        The items of a call are yielded together, including items that were sent again.

        Args:
            items: Different items.
            replicate: The number of the repetition; it selects the sample of the model.
        """
        asked = []
        for item in map(self._with_passages, items):
            decided = self._without_call(item)
            if decided is None:
                asked.append(item)
            else:
                yield decided
        groups = self._batches(asked)
        outcomes: list[list[Verdict | MissingVerdict]] = [[] for _ in groups]
        waiting = [1] * len(groups)
        batches = list(enumerate(groups))
        while batches:
            requests = [self._request(batch, replicate) for _, batch in batches]
            smaller: list[tuple[int, list[Item]]] = []
            with closing(self.model.complete_each(requests)) as results:
                for place, result in results:
                    group, batch = batches[place]
                    verdicts, why = self._read(batch, result, replicate)
                    outcomes[group] += verdicts.values()
                    rest = [item for item in batch if item.key not in verdicts]
                    parts: list[list[Item]] = []
                    if len(batch) > 1 and why[0] in _RETRIED_IN_PARTS:
                        size = max(1, len(batch) // 3)
                        parts = [rest[n : n + size] for n in range(0, len(rest), size)]
                    else:
                        outcomes[group] += [MissingVerdict(item.key, *why) for item in rest]
                    smaller += [(group, part) for part in parts]
                    waiting[group] += len(parts) - 1
                    if not waiting[group]:
                        # The items of a call are stored together or not at all, so that a resumed
                        # run repeats the other calls unchanged and finds them in the cache.
                        yield from outcomes[group]
            batches = smaller

    def _without_call(self, item: Item) -> Verdict | MissingVerdict | None:
        """Return the verdict, or the reason for its absence, if it is known without a call."""
        if item.relation == "answerability" and not _text(item).strip():
            return MissingVerdict(item.key, "cannot judge", "no passage of the collection is known")
        size = len(item.subject) + len(_text(item)) + sum(len(text) for _, text in item.history)
        if size > self._longest:
            return MissingVerdict(item.key, "too long", f"{size:,} characters")
        return verdict_on_blank(item, self.name, self.version(item.relation))

    def _with_passages(self, item: Item) -> Item:
        """Return an item of answerability with passages found by a search."""
        if item.relation != "answerability" or self._search is None:
            return item
        query = [text for role, text in item.history if role == "user"]
        passages = (*self._search("\n".join([*query, item.subject])), *item.passages)
        by_text = {passage.text: passage for passage in passages}
        return replace(item, passages=tuple(by_text.values()))

    def _batches(self, items: Iterable[Item]) -> list[list[Item]]:
        """Return batches of items by claim number, so that a resumed run repeats the same calls."""
        parts = (
            (item.name or item.row if item.relation in _SWAPPED else item.row // self._batch, item) for item in items
        )
        batches = group_values(
            ((item.relation, item.record, _text(item), part, item.history), item) for part, item in parts
        )
        return list(batches.values())

    def _request(self, batch: Sequence[Item], replicate: int) -> ChatRequest:
        relation = batch[0].relation
        prompt, listed, label = _PROMPTS[relation]
        turned = relation in _SWAPPED
        lines = [
            json.dumps({"id": str(n), listed: item.target if turned else item.subject}, ensure_ascii=False)
            for n, item in enumerate(batch, 1)
        ]
        ids = [str(n) for n in range(1, len(batch) + 1)]
        parts = {f"The {label}": _text(batch[0]), f"What to judge, one {listed} in each line": "\n".join(lines)}
        if batch[0].history:
            parts[_CONVERSATION] = _conversation(batch[0].history)
        last = f"The data has ended. Reply with JSON only: one verdict for each id ({', '.join(ids)})."
        labels = list(LABELS[relation])
        schema = _verdicts_schema(_STRING | {"enum": ids}, _STRING | {"enum": labels}, len(batch))
        return ChatRequest(fenced_messages(self._prompts[prompt], parts, last), schema, replicate)

    def _read(
        self, batch: Sequence[Item], result: Reply | ModelError, replicate: int
    ) -> tuple[dict[str, Verdict | MissingVerdict], tuple[str, str]]:
        """Return the verdicts of a reply by key, and code and reason for the missing verdicts."""
        entries: list[dict[str, str]] = []
        if isinstance(result, Reply):
            self._served.add(result.model)
            entries = result.data["verdicts"]
            why = ("no verdict", "the reply has no verdict on it, or several that differ")
        else:
            why = (result.code, result.what)
            if result.code == "invalid":  # it may have complete entries
                with suppress(InvalidReply):
                    entries = read_reply(result.text, _verdicts_schema(_STRING, _STRING, 10_000))["verdicts"]
        verdicts: dict[str, Verdict | MissingVerdict] = {}
        for number, item in enumerate(batch, 1):
            own = [entry for entry in entries if entry["id"] == str(number)]
            labels = {entry["label"] for entry in own}
            if len(labels) == 1 and labels <= set(LABELS[item.relation]):
                verdicts[item.key] = self._verdict(item, own[0], replicate)
        return verdicts, why

    def _verdict(self, item: Item, entry: Mapping[str, str], replicate: int) -> Verdict | MissingVerdict:
        label, quote, reason = entry["label"], entry["quote"].strip(), entry["reason"]
        quoted = None
        if item.relation == "answer-question" or label not in _NEEDS_QUOTE:
            quote = ""
        else:
            text = _text(item)
            parts = list(filter(None, _ELLIPSIS.split(quote)))
            occurs = bool(parts) and all(quote_occurs(part, text) for part in parts)
            # An instruction in a document can make the model quote the instruction itself.
            claimed = item.relation in SUPPORT or item.relation == "nugget-answer"
            quoted = occurs and (not claimed or share_content(item.subject, quote))
            if not quoted:
                if occurs:  # it may also be a paraphrase, or in another language
                    why = f"{label}, but with a quote that shares no term with the claim: {quote}"
                    return MissingVerdict(item.key, "unrelated quote", why)
                why = "a quote that does not occur in the text" if quote else "no quote"
                reason = f"{label}, but with {why}: {reason}"
                if item.relation == "answerability":  # "not answerable" would not be a weaker label
                    return MissingVerdict(item.key, "no verdict", reason)
                label = LABELS[item.relation][-1]
        if label == "not answerable" and self._search is None:
            why = "the contexts do not answer it; other documents of the collection may"
            return MissingVerdict(item.key, "cannot judge", why)
        return Verdict(item.key, label, self.name, self.version(item.relation), quote, reason, quoted, replicate)


def _text(item: Item) -> str:
    """Return the text against which the listed parts of an item are judged."""
    if item.relation == "answerability":
        return "\n\n".join(passage.text for passage in item.passages)
    return item.subject if item.relation in _SWAPPED else item.target


def _conversation(history: Iterable[tuple[str, str]]) -> str:
    return "\n".join(json.dumps({"role": role, "text": text}, ensure_ascii=False) for role, text in history)


# ---- claims and nuggets


@dataclass(frozen=True)
class ClaimExtraction(Result):
    """Claims, and optionally nuggets, extracted by a model.

    Attributes:
        extractor: The model and the version of its prompt.
        texts: The number of distinct answers and references.
        before: The number of texts whose claims were already stored.
        missing: The number of texts whose extraction failed, by failure code.
        usage: Calls, tokens, and cost; estimated in a dry run.
        dry_run: Whether no request was sent.
        found: The claims by kind (``claims`` or ``nuggets``) and text.
        nuggets: Whether nuggets were extracted, too.
    """

    _attributes = "extractor texts before missing dry_run"

    extractor: str
    texts: int
    before: int
    missing: Mapping[str, int]
    usage: Usage
    dry_run: bool = False
    found: Mapping[tuple[str, str], tuple[Claim, ...]] = field(default_factory=dict, repr=False)
    nuggets: bool = False

    def claims(self, record: AnswerRecord) -> ClaimSet:
        """Return the claims of a record, for ``claims=`` of `judge_answers`."""
        return ClaimSet(
            self._of(record, "claims", record.answer),
            self._of(record, "claims", record.reference),
            self._of(record, "nuggets", record.reference) if self.nuggets else None,
        )

    def _of(self, record: AnswerRecord, prompt: str, text: str | None) -> tuple[Claim, ...] | None:
        if text is None:
            return None
        return () if abstains(text) else self.found.get((prompt, _source(record, text)))

    def table(self) -> Table:
        """Return the numbers of texts."""
        missing = ((f"missing: {why}", number) for why, number in self.missing.items())
        return Table(
            ("what", "number"),
            (("texts", self.texts), ("already in the store", self.before), *missing),
            title=f"{self.extractor}: {'dry run' if self.dry_run else 'claims'}",
            notes=(str(self.usage),),
        )

    def summary(self) -> str:
        """Return the numbers of texts with claims and of failed texts, and the cost."""
        missing = sum(self.missing.values())
        return f"{self.extractor}: {many(self.texts, 'text')}, {missing} missing. {self.usage}"

    def _data(self) -> dict[str, Any]:
        return super()._data() | {"usage": asdict(self.usage)}


def extract_claims(
    answers: Iterable[AnswerRecord],
    model: ChatModel,
    store: VerdictStore,
    *,
    nuggets: bool = False,
    dry_run: bool = False,
) -> ClaimExtraction:
    """Extract the claims of answers and references with a language model.

    Claims and nuggets are stored by question and text, so that all systems share those of a
    reference. Only texts that are not in the store are sent. If extraction fails, measures that
    need the claims are undefined, and the next call retries the text. Blank texts and abstentions
    (`abstains`) have no claims.

    Args:
        answers: The records.
        model: The model.
        store: The store of claims.
        nuggets: Whether to also extract nuggets from the references.
        dry_run: Whether to send no request and only estimate the cost.

    Raises:
        ModelError: If no text has claims because every call failed.
    """
    texts = prompt_texts("rankgauge.answers", _FILES)
    wanted = {
        (prompt, _source(record, text)): (record, text)
        for record in answers
        for prompt, text in (
            ("claims", record.answer),
            ("claims", record.reference),
            *([("nuggets", record.reference)] if nuggets else []),
        )
        if text is not None and not abstains(text)
    }
    names = {
        prompt: f"{model.settings['model']} {prompt_version(prompt, texts[prompt])}" for prompt in ("claims", "nuggets")
    }
    extracted: dict[tuple[str, str], tuple[Claim, ...]] = {}
    for prompt, name in names.items():
        known = store.claims((source for kind, source in wanted if kind == prompt), name)
        extracted |= {(prompt, source): claims for source, claims in known.items()}
    before = len(extracted)
    todo = [key for key in wanted if key not in extracted]
    requests = [_extraction(texts, prompt, *wanted[prompt, source]) for prompt, source in todo]
    failures: list[ModelError] = []
    if dry_run:
        usage = model.estimate(requests, [_PER_CLAIMS] * len(requests))
    else:
        start = model.usage()

        store.create()

        def results() -> Generator[tuple[tuple[str, str], tuple[Claim, ...]], None, None]:
            with closing(model.complete_each(requests)) as replies:
                for done, (place, result) in enumerate(replies, 1):
                    if isinstance(result, ModelError):
                        failures.append(result)
                    else:
                        yield todo[place], _claims(result.data)
                    report(done, len(todo), "read")

        def keep(some: Sequence[tuple[tuple[str, str], tuple[Claim, ...]]]) -> None:
            extracted.update(some)
            for prompt, name in names.items():
                own = {source: claims for (kind, source), claims in some if kind == prompt}
                store.add_claims(own, name)

        store_in_batches(results(), keep)
        if failures and not extracted:
            raise failures[0]
        usage = model.usage() - start
    missing = Counter(failure.code for failure in failures)
    return ClaimExtraction(names["claims"], len(wanted), before, dict(missing), usage, dry_run, extracted, nuggets)


def _source(record: AnswerRecord, text: str) -> str:
    """Return the key under which the claims of a text are stored."""
    before = f"{_conversation(record.history)}\n\n" if record.history else ""
    return f"{before}{record.question}\n\n{text}"


def _extraction(prompts: Mapping[str, str], prompt: str, record: AnswerRecord, text: str) -> ChatRequest:
    parts = {"The answer" if prompt == "claims" else "The reference answer": text}
    parts["The question"] = record.question
    if record.history:
        parts[_CONVERSATION] = _conversation(record.history)
    last = "The data has ended. Reply with JSON only."
    items = _STRING if prompt == "claims" else object_schema(text=_STRING, vital={"type": "boolean"})
    schema = object_schema(**{prompt: {"type": "array", "items": items}})
    return ChatRequest(fenced_messages(prompts[prompt], parts, last), schema)


def _claims(data: Mapping[str, Any]) -> tuple[Claim, ...]:
    """Return the distinct, non-blank claims or nuggets of a reply."""
    if "claims" in data:
        return tuple(Claim(text) for text in dict.fromkeys(map(str.strip, data["claims"])) if text)
    vital: dict[str, bool] = {}
    for nugget in data["nuggets"]:
        text = nugget["text"].strip()
        vital[text] = vital.get(text, False) or nugget["vital"]
    return tuple(Claim(text, is_vital) for text, is_vital in vital.items() if text)
