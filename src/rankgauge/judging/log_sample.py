"""`sample_log`: questions drawn from a log, with the probability with which each was drawn."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankgauge.core.arguments import choice, integer
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.delimited import decoded_line
from rankgauge.formats.lines import numbered_lines
from rankgauge.formats.questions import named_rows
from rankgauge.formats.texts import QUESTIONS, TextSource
from rankgauge.judging.events import Question

_TEXTS = (*QUESTIONS, "text", "user_query")
_COUNTS = ("count", "frequency", "freq")


def sample_log(
    source: str | os.PathLike[str],
    n: int,
    *,
    by: str = "frequency",
    seed: int = 0,
    author: str = "",
) -> list[Question]:
    r"""Draw questions from a log without replacement, and record their inclusion probabilities.

    Questions are the same if they differ only in case and blanks. By ``frequency`` question i with
    frequency x_i is drawn with the probability min(1, n x_i / sum(x)), where those that reach 1 are
    drawn for certain and left out of the sum for the others; so the sample represents searches. By
    ``uniform`` each distinct question is drawn with n / N. The draw is systematic in random order
    (Madow 1949): exactly n questions are drawn, with exactly these probabilities.

    Args:
        source: CSV, TSV or JSON lines with a column ``query``, ``question`` or ``text``, and
            perhaps ``count`` or ``frequency``; or a text file with a question on each line.
        n: How many questions are drawn.
        by: ``frequency`` or ``uniform``.
        seed: The seed of the draw.
        author: The author of the questions.

    Returns:
        Questions with identifiers made of their text (the same in each sample), in random order.

    Raises:
        FormatError: With the first line that cannot be read.
        InputError: If the log has fewer distinct questions than are to be drawn.

    Example:
        >>> import tempfile, pathlib
        >>> log = pathlib.Path(tempfile.mkdtemp(), "log.txt")
        >>> _ = log.write_text("late fees\nopening hours\nLate fees\nlate fees\nwifi\n")
        >>> [(q.text, round(q.probability, 2)) for q in sample_log(log, 2, seed=1)]
        [('wifi', 0.5), ('late fees', 1.0)]
    """
    integer("n", n)
    by = choice("by", by, ("frequency", "uniform"))
    texts: dict[str, str] = {}
    counts: dict[str, int] = {}
    for text, count in _searches(TextSource.of(source)):
        key = " ".join(text.casefold().split())
        texts.setdefault(key, " ".join(text.split()))
        counts[key] = counts.get(key, 0) + count
    sizes = {key: count if by == "frequency" else 1 for key, count in counts.items() if count}
    if len(sizes) < n:
        raise InputError(
            f"{n} questions were to be drawn, and the log has {len(sizes)} different ones",
            where=os.fspath(source), fix=f"draw at most {len(sizes)}",
        )  # fmt: skip
    return [
        Question(
            "log-" + hashlib.sha256(key.encode()).hexdigest()[:12], texts[key], author=author,
            origin="log", probability=probability,
        )
        for key, probability in _draw(sizes, n, random.Random(f"log:{seed}"))  # noqa: S311 - a seed
    ]  # fmt: skip


def _searches(source: TextSource) -> Iterator[tuple[str, int]]:
    """Questions with how often they were asked, as they occur."""
    rows = named_rows(source, None)
    first = next(rows, None)
    if first is None:
        with source.open() as stream:
            for number, line in numbered_lines(stream, source.name):
                whole = decoded_line(line, source.name, number)
                if whole.strip():
                    yield whole, 1
        return
    for number, row in itertools.chain((first,), rows):
        text: Any = next((row[name] for name in _TEXTS if name in row), None)
        if text is None:
            raise FormatError(
                f"there is no column for the question: the columns are {', '.join(row)}",
                path=source.name, line=number, fix=f"name it {' or '.join(_TEXTS[:2])}",
            )  # fmt: skip
        if isinstance(text, str) and text.strip():
            yield text, _count(row, source.name, number)


def _count(row: Mapping[str, Any], name: str, line: int) -> int:
    given = next((row[column] for column in _COUNTS if column in row), 1)
    try:
        count = int(str(given))
    except ValueError:
        count = -1
    if count < 0:
        raise FormatError(
            f"got {given!r:.40} for a count", path=name, line=line,
            fix="give a whole number: how often the question was asked",
        )  # fmt: skip
    return count


def _draw(sizes: Mapping[str, int], n: int, rng: random.Random) -> list[tuple[str, float]]:
    """Systematic sampling with probability proportional to size, in whole numbers throughout."""
    rest = dict(sizes)
    certain: list[str] = []
    while rest:
        total, left = sum(rest.values()), n - len(certain)
        large = [key for key, size in rest.items() if left * size >= total]
        if not left or not large:
            break
        certain += large
        for key in large:
            del rest[key]
    drawn = [(key, 1.0) for key in certain]
    left = n - len(certain)
    if left:
        order: Sequence[str] = rng.sample(list(rest), len(rest))
        total = sum(rest.values())
        # Points at start, start + total, ... on a line on which each has left * size.
        point, end = rng.randrange(total), 0
        for key in order:
            end += left * rest[key]
            if point < end:
                drawn.append((key, left * rest[key] / total))
                point += total
    rng.shuffle(drawn)
    return drawn
