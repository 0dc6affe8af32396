"""Faults of judgments, runs and texts, their effect on the numbers, and fixes."""

from rankgauge.checks.check_inputs import check
from rankgauge.checks.fixes import FixedInputs, fix_inputs
from rankgauge.checks.kinds import FINDING_KINDS
from rankgauge.checks.result import CheckResult

__all__ = ["FINDING_KINDS", "CheckResult", "FixedInputs", "check", "fix_inputs"]
