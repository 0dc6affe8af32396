"""What is wrong with judgments, runs and texts, what it does to the numbers, and how to fix it."""

from rankgauge.checks.check_inputs import check
from rankgauge.checks.fixes import FixedInputs, fix_inputs
from rankgauge.checks.kinds import FINDING_KINDS
from rankgauge.checks.result import CheckResult

__all__ = ["FINDING_KINDS", "CheckResult", "FixedInputs", "check", "fix_inputs"]
