"""A project: one file that says what is evaluated, and one store of what was measured."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.project.init import NewProject as NewProject, create_project as create_project
    from rankgauge.project.project import (
        CollectedGrades as CollectedGrades,
        Project as Project,
        ProjectStatus as ProjectStatus,
        reevaluate as reevaluate,
    )
    from rankgauge.project.sections import (
        alert_thresholds as alert_thresholds,
        answer_settings as answer_settings,
        judging_settings as judging_settings,
        model_settings as model_settings,
        send_alerts as send_alerts,
    )
