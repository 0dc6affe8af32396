"""A search over configurations as text: what was tried, and what the best does on other queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from rankgauge.benchmark.exploration import Exploration
from rankgauge.core.grammar import unknown
from rankgauge.corpus.collection import Collection
from rankgauge.rendering.tables import Form, Table, render

__all__ = ["report_exploration"]


def report_exploration(
    exploration: Exploration,
    form: str = "table",
    *,
    collection: Collection | None = None,
    k: int = 5,
    color: bool = False,
) -> str:
    """A search over configurations as text.

    Args:
        exploration: Made by :func:`explore`.
        form: ``table`` (for a terminal), ``markdown``, ``latex``, ``html``; ``csv`` and ``json``
            have the trials only.
        collection: The texts, by which more failure patterns can be told apart.
        k: The cut-off of the failure patterns before and after.
        color: Whether a table may use the colours of a terminal.

    Raises:
        UnknownName: For another form.

    Example:
        >>> from rankgauge.benchmark.exploration import explore
        >>> qrels = {"q1": {"d"}, "q2": {"d"}}
        >>> found = explore(dict, lambda *_: ({"q1": ["d"], "q2": ["d"]}, None), qrels, {"k": [1]})
        >>> report_exploration(found, "csv").splitlines()
        ['configuration,k,"nDCG@10, tuning",', '1,1,1.0,best']
    """
    if form not in get_args(Form):
        raise unknown("form", form, get_args(Form))
    if form in {"csv", "json"}:
        return render(replace(exploration.table(), notes=()), form)
    return "\n".join(
        render(table, form, color=color) for table in _tables(exploration, collection, k)
    )


def _tables(found: Exploration, collection: Collection | None, k: int) -> Iterator[Table]:
    yield found.table()
    if found.comparison is not None:
        title = f"best and before on {len(found.test)} test queries"
        yield replace(found.comparison.differences_table(), title=title)
        yield found.before_after(collection, k=k)
    ablation = found.ablation()
    if ablation.rows:
        yield ablation
