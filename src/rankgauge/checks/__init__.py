"""What is wrong with judgments, runs and texts, what it does to the numbers, and what mends it."""

from rankgauge.checks.fixes import Mended, mend
from rankgauge.checks.inputs import check
from rankgauge.checks.problems import Problem
from rankgauge.checks.result import CheckResult

__all__ = ["CheckResult", "Mended", "Problem", "check", "mend"]
