"""`sample_questions`: probability samples of the questions of a log.

Near-duplicates are grouped before the draw, and a group is drawn as one question with the sum of
its frequencies. No near-duplicates are dropped after the draw, so inclusion probabilities are
exact.
"""

from __future__ import annotations

import hashlib
import os
import random
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rankgauge.core.arguments import choice, integer
from rankgauge.core.redaction import scrub
from rankgauge.core.text import inflect, keep, many
from rankgauge.errors import InputError
from rankgauge.formats.texts import TextSource
from rankgauge.production.log import EventLog, is_log
from rankgauge.production.question_sets import EvaluationQuestion, asked_lines, asked_rows
from rankgauge.rendering import Result, Table

WAYS = ("frequency", "uniform", "strata")
STRATA = ("head", "torso", "tail")

# Punctuation that is ignored at both ends of a word.
_SIGNS = ".,;:!?\"'()[]{}-\N{HORIZONTAL ELLIPSIS}„“”\u2018\u2019«»¿¡\u2013\u2014"
_ACCENTS = range(0x300, 0x370)
_LONG, _MEDIUM, _SHORT = 5, 4, 3


@dataclass(frozen=True, slots=True)
class SampledStratum:
    """A stratum of a log and the number of questions drawn from it.

    Attributes:
        name: ``head``, ``torso``, or ``tail``; ``all`` without strata.
        questions: The number of distinct questions, with near-duplicates counted as one.
        searches: The number of times that these questions were asked.
        drawn: The number of questions drawn.
        low: The lowest inclusion probability.
        high: The highest inclusion probability.
    """

    name: str
    questions: int
    searches: int
    drawn: int
    low: float
    high: float


@dataclass(frozen=True)
class QuestionSample(Result):
    """Questions drawn from a log.

    Attributes:
        source: The log.
        by: The sampling method, one of `WAYS`.
        seed: The seed of the draw.
        questions: The questions, in random order.
        strata: The strata.
        texts: The number of distinct texts in the log.
        scrubbed: The number of texts in which personal data was replaced.
        known: The number of times each excluded question was asked, by id.
    """

    _attributes = "*"

    source: str
    by: str
    seed: int
    questions: tuple[EvaluationQuestion, ...]
    strata: tuple[SampledStratum, ...]
    texts: int
    scrubbed: int
    known: Mapping[str, int]

    def table(self) -> Table:
        """Return one row for each stratum."""
        merged = self.texts - sum(stratum.questions for stratum in self.strata)
        asked, known = sum(map(bool, self.known.values())), many(len(self.known), "excluded question")
        return Table(
            ("stratum", "questions", "searches", "drawn", "probability"),
            tuple(
                (
                    stratum.name,
                    stratum.questions,
                    stratum.searches,
                    stratum.drawn,
                    f"{stratum.low:.4g}" if stratum.low == stratum.high else f"{stratum.low:.4g}-{stratum.high:.4g}",
                )
                for stratum in self.strata
            ),
            title=f"{many(len(self.questions), 'question')} drawn from {self.source} (by={self.by}, seed={self.seed})",
            notes=keep(
                f"{many(self.texts, 'distinct text')}: {merged} grouped with others; "
                f"personal data replaced in {self.scrubbed}",
                "weight gives means over searches, query_weight over distinct questions",
                self.known and f"{asked} of {known} {inflect(asked, 'was', 'were')} asked",
            ),
        )

    _columns = " ".join(("questions", *EvaluationQuestion.__dataclass_fields__))

    def summary(self) -> str:
        """Return the numbers of drawn and of all questions."""
        questions = sum(stratum.questions for stratum in self.strata)
        searches = sum(stratum.searches for stratum in self.strata)
        how = "uniformly" if self.by == "uniform" else f"by {self.by}"
        return (
            f"{many(len(self.questions), 'question')} drawn {how} from {questions:,} "
            f"distinct ones ({searches:,} searches)"
        )


def sample_questions(
    source: EventLog | str | os.PathLike[str],
    n: int,
    *,
    by: str = "frequency",
    exclude: Iterable[EvaluationQuestion] = (),
    personal: str = "scrub",
    seed: int = 0,
    date: str | None = None,
) -> QuestionSample:
    r"""Draw questions from a log without replacement, and record their inclusion probabilities.

    Near-duplicates are grouped first: questions that differ only in case, accents, spaces, and
    punctuation, or by one typo in one word (one letter added, missing, or replaced in a word of
    five letters or more, or a plural s). A group counts as one question with its most frequent text
    and the sum x of its frequencies. Groups of excluded questions are not drawn, but their
    frequencies are counted.

    - By ``frequency``, a question is drawn with probability min(1, n x / sum(x)), where questions
      that reach 1 are always drawn and excluded from the sum for the others: systematic sampling
      in random order (Madow 1949) of exactly n questions with exactly these probabilities.
    - By ``uniform``, each question is drawn with probability n / N.
    - By ``strata``, equal numbers are drawn uniformly from the head (the most frequent questions
      with a third of the searches), the torso (the next third), and the tail. If a stratum has
      fewer questions, the rest is drawn from the others.

    With values v of drawn questions and weights w, sum(w v) / sum(w) estimates (Hájek 1971) the
    mean over searches with w = `weight` = x / probability, and the mean over distinct questions
    with w = `query_weight` = 1 / probability. Questions drawn by frequency have the same `weight`
    unless their probability is 1, so that unweighted means are means over searches; questions drawn
    uniformly have the same `query_weight`.

    Args:
        source: An `EventLog` or its path (a folder, or Parquet files); or CSV, TSV, or JSON lines
            with a column ``query``, ``question``, or ``text``, and optionally ``count`` or
            ``frequency``; or a text file with one question per line.
        n: The number of questions to draw.
        by: ``frequency``, ``uniform``, or ``strata``.
        exclude: Questions that are not drawn, including their near-duplicates.
        personal: ``scrub`` replaces personal data (`scrub`) before questions are compared;
            ``keep`` leaves texts as they are.
        seed: The seed of the draw.
        date: The ISO date of the questions; default: today (UTC).

    Returns:
        Questions in random order, with identifiers derived from their texts (the same in each
        sample).

    Raises:
        FormatError: If a line cannot be read.
        InputError: If the log has fewer than n distinct questions.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp(), "log.txt")
        >>> _ = log.write_text("late fees\nopening hours\nLate fees?\nlate fees\nwifi\n")
        >>> drawn = sample_questions(log, 2, seed=1).questions
        >>> [(q.text, q.frequency, round(q.probability, 2)) for q in drawn]
        [('wifi', 1, 0.5), ('late fees', 3, 1.0)]
    """
    integer("n", n)
    by = choice("by", by, WAYS)
    kept = choice("personal", personal, ("scrub", "keep")) == "keep"
    name = os.fspath(source) if not isinstance(source, EventLog) else repr(source)
    counts: dict[str, int] = defaultdict(int)
    texts = scrubbed = 0
    for text, count in _searches(source):
        texts += 1
        plain = text if kept else scrub(text)
        scrubbed += plain != text
        counts[plain] += count
    excluded = list(exclude)
    groups = group_questions(counts, [question.text for question in excluded])
    known = {question.id: groups[place].frequency for place, question in enumerate(excluded)}
    candidates = [group for group in groups[len(excluded) :] if group.frequency]
    if len(candidates) < n:
        raise InputError(
            f"cannot draw {n} questions: the log has {many(len(candidates), 'distinct question')}"
            + (f" besides the {len(excluded)} excluded" if excluded else ""),
            where=name,
            fix=f"draw at most {len(candidates)}",
        )
    rng = random.Random(f"log:{seed}")  # noqa: S311 - a seed, not a secret
    drawn: list[tuple[int, float, str]] = []
    strata = []
    for stratum, members, size in _strata(candidates, n, by):
        sizes = {m: candidates[m].frequency if by == "frequency" else 1 for m in members}
        chosen, probabilities = _draw(sizes, size, rng)
        drawn += [(member, probabilities[member], stratum) for member in chosen]
        strata.append(
            SampledStratum(
                stratum or "all",
                len(members),
                sum(candidates[m].frequency for m in members),
                size,
                min(probabilities.values()),
                max(probabilities.values()),
            )
        )
    rng.shuffle(drawn)
    today = datetime.now(UTC).date().isoformat() if date is None else date
    return QuestionSample(
        name,
        by,
        seed,
        tuple(
            EvaluationQuestion(
                question_id(candidates[member].text),
                candidates[member].text,
                "log",
                "rotating",
                today,
                1,
                candidates[member].frequency,
                probability,
                candidates[member].frequency / probability,
                1 / probability,
                stratum,
            )
            for member, probability, stratum in drawn
        ),
        tuple(strata),
        texts,
        scrubbed,
        known,
    )


def question_id(text: str, prefix: str = "log") -> str:
    """Return an identifier derived from a text, ignoring case and whitespace."""
    key = " ".join(text.casefold().split())
    return f"{prefix}-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


# ---- the log


def _searches(source: EventLog | str | os.PathLike[str]) -> Iterator[tuple[str, int]]:
    """Yield distinct texts with the number of times each was asked."""
    if not isinstance(source, EventLog) and is_log(os.fspath(source)):
        source = EventLog(source)
    counts: dict[str, int] = defaultdict(int)
    rows = source.texts() if isinstance(source, EventLog) else asked_rows(TextSource.of(source), asked_lines)
    for *_, text, count in rows:
        counts[" ".join(text.split())] += count
    # Sorted so that the draw does not depend on the order of the log or the database.
    yield from ((text, counts[text]) for text in sorted(counts) if text and counts[text])


# ---- near-duplicates


@dataclass(slots=True)
class QuestionGroup:
    """A question and its near-duplicates.

    Attributes:
        text: The text that represents the group.
        words: Its words, as they are compared.
        frequency: The total number of times that the texts of the group were asked.
    """

    text: str
    words: tuple[str, ...]
    frequency: int = 0


def group_questions(counts: Mapping[str, int], known: Sequence[str] = ()) -> list[QuestionGroup]:
    """Group texts that are the same question (see `sample_questions`).

    In descending order of frequency, each text joins the first group whose text is a
    near-duplicate, or starts a group, so that groups do not grow by chains of similar texts.

    Args:
        counts: The number of times each text was asked.
        known: Texts whose groups precede all others.

    Returns:
        The groups of the known texts, in order, then the others by descending frequency.

    Example:
        >>> [g.text for g in group_questions({"opening hours": 5, "Opening huors?": 1, "wifi": 2})]
        ['opening hours', 'wifi']
    """
    groups: list[QuestionGroup] = []
    by_key: dict[str, QuestionGroup] = {}
    near: dict[tuple[int, int, str, tuple[str, ...]], list[QuestionGroup]] = defaultdict(list)
    for text in (*known, *sorted(counts, key=lambda text: (-counts[text], text))):
        is_known = len(groups) < len(known)
        words = _words(text)
        key = "".join(words) or text
        group = by_key.get(key)
        holes = list(_holes(words))
        if group is None:
            group = next(
                (
                    other
                    for hole in holes
                    for other in near.get(hole, ())
                    if _near(words[hole[1]], other.words[hole[1]])
                ),
                None,
            )
        if is_known or group is None:
            new = QuestionGroup(text, words)
            groups.append(new)
            for hole in holes:
                near[hole].append(new)
            # If known texts are equal, the first receives the frequency.
            group = by_key.setdefault(key, new)
        else:
            by_key[key] = group
        if not is_known:
            group.frequency += counts[text]
    return [*groups[: len(known)], *sorted(groups[len(known) :], key=lambda group: (-group.frequency, group.text))]


def _words(text: str) -> tuple[str, ...]:
    """Return the words without case, accents of Latin letters, and punctuation at their ends."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(letter for letter in plain if ord(letter) not in _ACCENTS)
    return tuple(filter(None, (word.strip(_SIGNS) for word in plain.split())))


def _holes(words: Sequence[str]) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
    """Yield keys shared by texts that differ in one word, but not in its first letter."""
    for place, word in enumerate(words):
        if len(word) >= _SHORT:
            yield len(words), place, word[0], (*words[:place], *words[place + 1 :])


def _near(word: str, other: str) -> bool:
    """Return whether two words with the same first letter differ by one typing error."""
    if not (word.isalpha() and other.isalpha()):
        return False
    short, long = sorted((word, other), key=len)
    if len(short) == len(long):
        wrong = [place for place in range(len(word)) if word[place] != other[place]]
        swapped = (
            len(wrong) == 2
            and wrong[1] == wrong[0] + 1
            and word[wrong[0]] == other[wrong[1]]
            and word[wrong[1]] == other[wrong[0]]
        )
        return len(word) >= _LONG and (len(wrong) == 1 or swapped)
    if len(long) != len(short) + 1:
        return False
    if long == short + "s":
        return len(short) >= _SHORT
    return len(short) >= _MEDIUM and any(long[:place] + long[place + 1 :] == short for place in range(len(long)))


# ---- the draw


def _strata(groups: Sequence[QuestionGroup], n: int, by: str) -> Iterator[tuple[str, list[int], int]]:
    """Yield the name, groups, and sample size of each non-empty stratum."""
    if by != "strata":
        yield "", list(range(len(groups))), n
        return
    total, before = sum(group.frequency for group in groups), 0
    members: dict[str, list[int]] = {name: [] for name in STRATA}
    for place, group in enumerate(groups):
        members[STRATA[len(STRATA) * before // total]].append(place)
        before += group.frequency
    filled = sorted((name for name in STRATA if members[name]), key=lambda s: len(members[s]))
    if n < len(filled):
        raise InputError(
            f"{many(n, 'question')} cannot represent {len(filled)} strata",
            where="n",
            fix=f"draw {len(filled)} or more, or by frequency",
        )
    sizes: dict[str, int] = {}
    for place, name in enumerate(filled):
        left, strata = n - sum(sizes.values()), len(filled) - place
        sizes[name] = min(len(members[name]), left // strata)
    for name in STRATA:
        if sizes.get(name):
            yield name, members[name], sizes[name]


def _draw(sizes: Mapping[int, int], n: int, rng: random.Random) -> tuple[list[int], dict[int, float]]:
    """Draw a systematic sample with probabilities proportional to size, using exact integers.

    Return the groups drawn, and the probabilities of all groups.
    """
    rest = dict(sizes)
    drawn: list[int] = []
    # Groups with probability 1 are drawn first.
    while rest and n > len(drawn):
        total, left = sum(rest.values()), n - len(drawn)
        large = [key for key, size in rest.items() if left * size >= total]
        if not large:
            break
        drawn += large
        for key in large:
            del rest[key]
    total, left = sum(rest.values()), n - len(drawn)
    probabilities = dict.fromkeys(drawn, 1.0) | {key: left * size / total for key, size in rest.items()}
    if left:
        # Points start, start + total, ... on a line of segments with length left * size.
        order, point, end = rng.sample(list(rest), len(rest)), rng.randrange(total), 0
        for key in order:
            end += left * rest[key]
            if point < end:
                drawn.append(key)
                point += total
    return drawn, probabilities
