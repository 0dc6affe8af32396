"""Foundations of the other packages: ids, columns, measure grammar, policies, storage."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.core.findings import (
        Effect as Effect,
        Evidence as Evidence,
        Finding as Finding,
        FindingKind as FindingKind,
        Location as Location,
    )
    from rankgauge.core.policies import Policies as Policies
    from rankgauge.core.project_file import ProjectFile as ProjectFile
    from rankgauge.core.project_names import (
        PROJECT_FILE as PROJECT_FILE,
        find_project_file as find_project_file,
        is_short_name as is_short_name,
    )
    from rankgauge.core.recommendations import (
        NEXT_STEPS as NEXT_STEPS,
        USE_CASES as USE_CASES,
        UseCase as UseCase,
        next_step as next_step,
        use_case as use_case,
    )
    from rankgauge.core.redaction import redact as redact
    from rankgauge.core.threads import default_jobs as default_jobs, map_in_threads as map_in_threads
