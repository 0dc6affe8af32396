"""Thresholds of online metrics: what makes a monitor fail."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rankgauge.errors import InputError
from rankgauge.production.metrics import metrics_of

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
    """The result of a threshold.

    Attributes:
        threshold: The threshold.
        verdict: ``FAIL`` if the whole 95% interval is beyond the number, ``PASS`` if it is not
            beyond it at all, ``INCONCLUSIVE`` if it includes the number or there is no interval,
            ``NOT DEFINED`` without a value.
        sentence: The verdict as a sentence.
    """

    threshold: Threshold
    verdict: ThresholdVerdict
    sentence: str
