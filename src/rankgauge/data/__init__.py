"""Judgments and runs, joined and ranked once as the input of all measures."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.data.join import ranked as ranked
    from rankgauge.data.judged_run import JudgedRun as JudgedRun
    from rankgauge.data.preference_qrels import (
        PreferenceQrels as PreferenceQrels,
        PreferenceRun as PreferenceRun,
        read_preference_qrels as read_preference_qrels,
    )
    from rankgauge.data.qrels import (
        Qrels as Qrels,
        fingerprint as fingerprint,
        read_qrels as read_qrels,
        write_qrels as write_qrels,
    )
    from rankgauge.data.records import Records as Records
    from rankgauge.data.run import Run as Run, read_run as read_run, run_name as run_name, write_run as write_run
    from rankgauge.data.special_qrels import (
        SampledQrels as SampledQrels,
        SampledRun as SampledRun,
        SubtopicQrels as SubtopicQrels,
        SubtopicRun as SubtopicRun,
        read_sampled_qrels as read_sampled_qrels,
        read_subtopic_qrels as read_subtopic_qrels,
    )
    from rankgauge.data.subsets import cut as cut, keep_queries as keep_queries, sample_queries as sample_queries
