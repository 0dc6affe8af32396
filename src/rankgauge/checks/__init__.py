"""Faults of judgments, runs, and texts, their effects on the numbers, and fixes."""

from rankgauge.checks.check_inputs import check
from rankgauge.checks.fixes import FixedInputs, fix_inputs
from rankgauge.checks.result import FINDING_KINDS, CheckResult

__all__ = ["FINDING_KINDS", "CheckResult", "FixedInputs", "check", "fix_inputs"]
