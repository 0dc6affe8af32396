"""Thresholds of online metrics: what makes a monitor fail."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from rankgauge.errors import InputError
from rankgauge.production.metrics import metrics_of

if TYPE_CHECKING:
    from rankgauge.production.online_result import OnlineValue

ThresholdVerdict: TypeAlias = Literal["PASS", "INCONCLUSIVE", "NOT DEFINED", "FAIL"]
_WRITTEN = re.compile(r"\s*(\w+)\s*([<>])\s*([-+.\deE]+)\s*")


@dataclass(frozen=True)
class Threshold:
    """A number beyond which a metric fails.

    Attributes:
        metric: The name of the metric.
        above: Whether it fails above the number, else below.
        number: The number.
    """

    metric: str
    above: bool
    number: float

    @classmethod
    def of(cls, text: str) -> Threshold:
        """Read a threshold, such as ``"idk_rate > 0.2"``.

        Raises:
            InputError: If it is not of this form.
            UnknownName: For an unknown metric.

        Example:
            >>> Threshold.of("thumbs_ratio < .7")
            Threshold(metric='thumbs_ratio', above=False, number=0.7)
        """
        found = _WRITTEN.fullmatch(text)
        try:
            number = float(found[3]) if found else math.nan
        except ValueError:
            number = math.nan
        if found is None or not math.isfinite(number):
            raise InputError(
                f"got {text!r:.60}", where="threshold", fix="write NAME > NUMBER or NAME < NUMBER"
            )
        metrics_of([found[1]])
        return cls(found[1], found[2] == ">", number)

    def __str__(self) -> str:
        return f"{self.metric} {'>' if self.above else '<'} {self.number:g}"


@dataclass(frozen=True)
class ThresholdCheck:
    """What became of a threshold.

    Attributes:
        threshold: The threshold.
        verdict: ``FAIL`` if the whole 95% interval is beyond the number, ``PASS`` if it is not
            beyond it at all, ``INCONCLUSIVE`` if it includes the number or there is no interval,
            ``NOT DEFINED`` without a value.
        sentence: The verdict in words.
    """

    threshold: Threshold
    verdict: ThresholdVerdict
    sentence: str


def check_threshold(threshold: Threshold, values: Iterable[OnlineValue]) -> ThresholdCheck:
    """Return whether a metric is surely beyond a threshold."""
    found = next(each for each in values if each.metric.name == threshold.metric)
    if not found.defined:
        return ThresholdCheck(threshold, "NOT DEFINED", f"{threshold}: {found.reason}")
    side = "above" if threshold.above else "below"
    low, high = found.low, found.high
    if not threshold.above:  # mirrored, so that beyond is always above
        low, high = -high, -low
    limit = threshold.number if threshold.above else -threshold.number
    verdict: ThresholdVerdict = "INCONCLUSIVE"
    said = f"may be {side} {threshold.number:g}"
    if low > limit:
        verdict, said = "FAIL", f"is {side} {threshold.number:g}"
    elif high <= limit:
        verdict, said = "PASS", f"is not {side} {threshold.number:g}"
    spread = (
        f"95% interval {found.interval_text()}"
        if not math.isnan(low)
        else f"no interval: {found.reason}"
    )
    return ThresholdCheck(
        threshold, verdict, f"{threshold.metric} {said}: {found.value:.4g} ({spread})"
    )
