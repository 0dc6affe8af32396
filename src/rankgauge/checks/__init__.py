"""Faults of judgments, runs, and texts, their effects on the numbers, and fixes."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.checks.check_inputs import FINDING_KINDS as FINDING_KINDS, CheckResult as CheckResult, check as check
    from rankgauge.checks.fixes import (
        FixedInputs as FixedInputs,
        fix_inputs as fix_inputs,
        fixable_codes as fixable_codes,
    )
