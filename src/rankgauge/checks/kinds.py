"""Every kind of finding of check() and describe_collection(), by code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rankgauge.checks import pair_checks, qrels_checks, run_checks, text_checks
from rankgauge.core.findings import FindingKind
from rankgauge.corpus import description

_MODULES = (qrels_checks, run_checks, pair_checks, text_checks, description)
_ORDER = "FJRPMT"

#: Files, judgments, runs, both together, measures, texts.
FINDING_KINDS: Mapping[str, FindingKind] = MappingProxyType(
    {
        kind.code: kind
        for kind in sorted(
            (v for module in _MODULES for v in vars(module).values() if isinstance(v, FindingKind)),
            key=lambda kind: (_ORDER.index(kind.code[0]), kind.code),
        )
    }
)
