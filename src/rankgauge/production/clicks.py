"""Implicit judgments: grades of documents from clicks, corrected for position bias."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from rankgauge import stats
from rankgauge.core.arguments import choice as one_of, integer
from rankgauge.core.escaping import dump_json
from rankgauge.core.files import write_atomically
from rankgauge.core.text import keep, many
from rankgauge.corpus import convert
from rankgauge.data.qrels import Qrels
from rankgauge.errors import InputError
from rankgauge.production.events import statement
from rankgauge.production.log import EventLog
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table, by_column
from rankgauge.stats.arrays import FloatArray

Model: TypeAlias = Literal["position", "coec"]
# Smallest ratios for grades 1, 2, and 3.
CUTS = (0.5, 1.0, 2.0)
_SCALE = (
    "less than half as often as expected",
    "less often than expected",
    "up to twice as often as expected",
    "at least twice as often as expected",
)
_MODELS = {
    "coec": "clicks over expected clicks: expected is the sum of the click rates of the ranks at "
    "which the document was shown; shrunk toward 1 (gamma prior, empirical Bayes); no intervals, because "
    "click rates include the quality of the documents at a rank, which biased ratios by a factor of up "
    "to 3.3 for 90% of the documents in simulations",
    "position": "position-based model: attraction of the document over the mean attraction, given "
    "how often its ranks are examined; intervals are widened by a factor of 2 for users who do not "
    "follow the model, and cover at least 92% in simulations",
}
_BIAS = 2.0  # factor by which intervals are widened: docs/explain/experiments.md
_LEAST_EXPECTED = 1.0


@dataclass(frozen=True, eq=False)
class ImplicitJudgments(Result):
    """Grades of documents computed from clicks. Returned by :func:`implicit_judgments`.

    Documents that were never or too rarely shown have no grade: they are unjudged.

    Attributes:
        judgments: The grades, 0 to 3.
        model: ``coec`` or ``position``.
        texts: Text of each question, by identifier in `judgments`.
        questions: (P,) identifiers of the questions of the graded documents.
        documents: (P,) identifiers of the documents.
        shown: (P,) numbers of impressions: questions with this text for which the document was
            shown.
        clicks: (P,) numbers of impressions with a click.
        expected: (P,) expected clicks of the average document at the same ranks.
        ratio: (P,) ratios of clicks to expected clicks according to the model.
        low: (P,) lower bounds of the 95% intervals of the ratios, widened by a factor of 2 for users
            who do not follow the model; NaN for ``coec``, whose ratios are biased.
        high: (P,) upper bounds of the intervals.
        grades: (P,) grades from 0 to 3; -1 for documents left unjudged by `drop_unsure`.
        ranks: For each rank: the rank, impressions, click rate, and examination probability of the
            position-based model with its interval (NaN for ``coec``).
        about: The origin, rule, and counts that :meth:`write` saves.
    """

    _attributes = "*=about scale=_scale ranks=rank_table.records texts rows=data_table.records"

    judgments: Qrels
    model: Model
    texts: Mapping[str, str]
    questions: tuple[str, ...]
    documents: tuple[str, ...]
    shown: FloatArray
    clicks: FloatArray
    expected: FloatArray
    ratio: FloatArray
    low: FloatArray
    high: FloatArray
    grades: np.ndarray[Any, np.dtype[np.int64]]
    ranks: tuple[tuple[int, float, float, float, float, float], ...]
    about: Mapping[str, Any]

    def table(self) -> Table:
        """Return the number of documents by grade, under the numbers of graded documents and questions."""
        judged = int((self.grades >= 0).sum())
        return Table(
            ("grade", "clicked", "documents"),
            tuple((row["grade"], row["means"], row["documents"]) for row in self._scale()),
            title=f"{many(judged, 'document')} of {many(len(set(self.questions)), 'question')} judged by "
            f"clicks ({self.model}), not by people",
            notes=tuple(self.about["notes"]),
        )

    def rank_table(self) -> Table:
        """Return the click rate and the examination probability of each rank."""
        modeled = self.model == "position"
        ends = ("–" if math.isnan(row[3]) else f"{row[4]:.3f} to {row[5]:.3f}" for row in self.ranks)
        return Table(
            *by_column(
                ("rank", (row[0] for row in self.ranks)),
                ("impressions", (int(row[1]) for row in self.ranks)),
                ("click rate", (row[2] for row in self.ranks)),
                modeled and ("examination", (row[3] for row in self.ranks)),
                modeled and ("95% CI", ends),
            ),
            digits=3,
            right=frozenset({4}),
        )

    def data_table(self) -> Table:
        """Return one row for each graded document."""
        return Table(
            *by_column(
                ("question", self.questions),
                ("document", self.documents),
                ("impressions", self.shown.tolist()),
                ("clicks", self.clicks.tolist()),
                ("expected clicks", self.expected.tolist()),
                ("ratio", self.ratio.tolist()),
                ("low", self.low.tolist()),
                ("high", self.high.tolist()),
                ("grade", (None if grade < 0 else grade for grade in self.grades.tolist())),
            )
        )

    def write(self, target: str | os.PathLike[str], format: str | None = None) -> tuple[str, ...]:
        """Write the judgments, ``TARGET.about.json``, and ``TARGET.queries.jsonl``.

        An evaluation of TARGET reads ``TARGET.about.json`` and notes that its judgments are from
        clicks.

        Args:
            target: The file, whose name determines the format (:func:`rankgauge.convert`); ``-``
                for standard output, without the other files.
            format: A format of :func:`rankgauge.convert`.

        Returns:
            Notes on content that the format cannot hold.
        """
        done = convert(self.judgments, target, target_format=format)
        if os.fspath(target) != "-":
            name = os.fspath(target)
            with write_atomically(f"{name}.about.json") as stream:
                stream.write(dump_json(dict(self.about)).encode() + b"\n")
            with write_atomically(f"{name}.queries.jsonl", private=True) as stream:
                for question, text in self.texts.items():
                    line = dump_json({"_id": question, "text": text}).replace("\n", " ")
                    stream.write(line.encode() + b"\n")
        return done.losses + done.notes

    def _scale(self) -> list[dict[str, Any]]:
        counts = np.bincount(self.grades[self.grades >= 0], minlength=len(_SCALE)).tolist()
        return [{"grade": grade, "means": means, "documents": counts[grade]} for grade, means in enumerate(_SCALE)]


def implicit_judgments(
    log: EventLog | str | os.PathLike[str],
    *,
    model: Model = "position",
    queries: Mapping[str, str] | None = None,
    min_shown: int = 10,
    drop_unsure: bool = False,
) -> ImplicitJudgments:
    """Estimate grades of documents from the impressions and clicks of a log.

    Questions with the same text (ignoring case and spaces) are one query. A document counts once
    per question asked, at the rank of its first impression. Clicks without a logged impression and
    rank are counted but not used.

    The grade depends on the ratio of clicks to the expected clicks of the average document at the
    same ranks: 0 below 0.5, 1 from 0.5, 2 from 1, 3 from 2. With ``position``, the ratio is
    attraction over mean attraction (:func:`rankgauge.stats.fit_position_model`), which needs
    documents shown at several ranks; with ``coec``, it is that of
    :func:`rankgauge.stats.expected_clicks`, which is biased by the quality of the documents at a
    rank, and has no interval.

    Clicks show that a result looked good in its list, not that it answers the question.

    Args:
        log: The log.
        model: ``position`` or ``coec``.
        queries: Texts of queries by identifier; only questions with these texts are judged. If
            None, identifiers are ``log-`` and a hash of the text.
        min_shown: The smallest number of impressions of a judged document. Documents with less than
            one expected click are not judged either.
        drop_unsure: Whether to leave documents unjudged if their interval contains 0.5; not with
            ``coec``.

    Raises:
        InputError: If no document can be judged.
    """
    chosen: Model = one_of("model", model, get_args(Model))  # type: ignore[assignment] # one of them
    integer("min_shown", min_shown)
    if drop_unsure and chosen == "coec":
        raise InputError(
            "coec has no intervals, so no document is known to be unsure",
            where="drop_unsure",
            fix="use model='position' (--model position), or leave out drop_unsure (--drop-unsure)",
        )
    log = EventLog.of(log)
    with log.connection() as connection:
        connection.execute(statement("click_counts"))
        [unused] = connection.execute(statement("unused_clicks")).fetchall()
        columns = connection.execute(
            "SELECT pair, rank, shown, clicked FROM counted JOIN pairs USING (text, document)"
        ).fetchnumpy()
        if not len(columns["pair"]):
            raise InputError(
                "no impression with a rank and the text of its question",
                where=log.path,
                fix="log impressions (documents and ranks) and questions (text); see rankgauge logs show LOG",
            )
        rows = tuple(np.asarray(columns[name]) for name in ("pair", "rank", "shown", "clicked"))
        (shown, clicks, expected, ratio, low, high), ranks = _estimates(chosen, rows)
        enough = (shown >= min_shown) & (expected >= _LEAST_EXPECTED) & np.isfinite(ratio)
        names = [
            (text, document)
            for pair, text, document in connection.execute(statement("shown_pairs"), {"least": min_shown}).fetchall()
            if enough[pair]
        ]
    wanted = None if queries is None else {" ".join(text.lower().split()): name for name, text in queries.items()}
    if wanted is not None:
        inside = np.array([text in wanted for text, _ in names], dtype=bool)
        names = [name for name, keep in zip(names, inside, strict=True) if keep]
        enough[enough] = inside
    if not names:
        raise InputError(
            f"no document was shown at least {min_shown} times with at least "
            f"{_LEAST_EXPECTED:g} expected click" + ("" if queries is None else " for one of the queries"),
            where=log.path,
            fix="collect more clicks, or lower min_shown (--min-shown)",
        )
    grades = np.searchsorted(CUTS, ratio[enough], side="right")
    unsure = (low[enough] < CUTS[0]) & (high[enough] >= CUTS[0])
    if drop_unsure:
        grades[unsure] = -1
    ids = {
        text: (wanted or {}).get(text) or f"log-{hashlib.sha256(text.encode()).hexdigest()[:12]}" for text, _ in names
    }
    judged: dict[str, dict[str, int]] = {}
    for (text, document), grade in zip(names, grades.tolist(), strict=True):
        if grade >= 0:
            judged.setdefault(ids[text], {})[document] = grade
    if not judged:
        raise InputError(
            f"the intervals of all {len(names):,} documents contain {CUTS[0]}",
            where=log.path,
            fix="collect more clicks, or leave out drop_unsure (--drop-unsure)",
        )
    rule = f"grades by ratio: 0 below {CUTS[0]:g}, " + ", ".join(
        f"{grade} from {cut:g}" for grade, cut in enumerate(CUTS, 1)
    )
    few = len(shown) - int(np.count_nonzero(enough))
    notes = [
        _MODELS[chosen],
        rule,
        (
            f"unjudged: {few:,} documents of questions with fewer than {min_shown} impressions or "
            f"{_LEAST_EXPECTED:g} expected click, or of other queries; and all that were never "
            "shown"
        ),
        *keep(
            chosen == "position"
            and f"{int(unsure.sum()):,} with an interval that contains {CUTS[0]:g}"
            + (": left unjudged" if drop_unsure else ": they may be relevant or not")
        ),
        *_unused_notes(unused),
        "clicks show which results look good; let people check a sample before gating on them",
    ]
    about = {
        "origin": "clicks",
        "model": chosen,
        "rule": f"{_MODELS[chosen]}; {rule}",
        "cuts": list(CUTS),
        "min_shown": min_shown,
        "min_expected": _LEAST_EXPECTED,
        "drop_unsure": drop_unsure,
        "log": Path(log.path).name,
        "documents": int((grades >= 0).sum()),
        "questions": len(judged),
        "unsure": int(unsure.sum()),
        "notes": notes,
    }
    return ImplicitJudgments(
        Qrels.of(judged),
        chosen,
        {ids[text]: text for text in ids},
        tuple(ids[text] for text, _ in names),
        tuple(document for _, document in names),
        shown[enough],
        clicks[enough],
        expected[enough],
        ratio[enough],
        low[enough],
        high[enough],
        grades,
        ranks,
        about,
    )


def _estimates(
    model: Model, rows: tuple[Any, ...]
) -> tuple[tuple[FloatArray, ...], tuple[tuple[int, float, float, float, float, float], ...]]:
    """Return columns of all pairs (impressions, clicks, expected clicks, ratios, bounds), and rows of ranks."""
    _, rank, shown, clicked = rows
    ranks, place = np.unique(rank, return_inverse=True)
    impressions, clicks = np.bincount(place, shown), np.bincount(place, clicked)
    if model == "coec":
        coec = stats.expected_clicks(*rows)
        unknown = np.full_like(coec.ratio, math.nan)
        columns = (coec.shown, coec.clicks, coec.expected, coec.ratio, unknown, unknown)
        examination = (np.full(len(ranks), math.nan),) * 3
    else:
        fit = stats.fit_position_model(*rows)
        known = fit.examined > 0
        mean = float((fit.attraction * fit.examined)[known].sum() / fit.examined[known].sum())
        ratios = (fit.attraction / mean, fit.low / mean / _BIAS, fit.high / mean * _BIAS)
        columns = (fit.shown, fit.clicks, fit.examined * mean, *ratios)
        examination = (fit.examination, fit.examination_low, fit.examination_high)
    table = (ranks, impressions, clicks / impressions, *examination)
    return columns, tuple(zip(*(column.tolist() for column in table), strict=True))


def _unused_notes(counts: tuple[int, ...]) -> tuple[str, ...]:
    impressions, placed, without_text, clicks, used = map(int, counts)
    return keep(
        impressions > placed
        and f"{impressions - placed:,} of {many(impressions, 'impression')} not used: without a "
        "rank, or repeated for the same question",
        without_text and f"{many(without_text, 'impression')} not used: the text of the question is unknown",
        clicks > used
        and f"{clicks - used:,} of {many(clicks, 'click')} not used: no impression of the document with a rank",
    )
