"""Production monitoring: event logs, online metrics, experiments, drift, and question sampling."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.core.redaction import scrub as scrub
    from rankgauge.production.clicks import (
        ImplicitJudgments as ImplicitJudgments,
        implicit_judgments as implicit_judgments,
    )
    from rankgauge.production.clusters import (
        Addition as Addition,
        MarkingWord as MarkingWord,
        Outlier as Outlier,
        QuestionCluster as QuestionCluster,
    )
    from rankgauge.production.distinct_questions import Traits as Traits
    from rankgauge.production.drift import measure_drift as measure_drift
    from rankgauge.production.drift_result import (
        Detectable as Detectable,
        Distinction as Distinction,
        DriftReport as DriftReport,
        QuestionPoint as QuestionPoint,
        ReweightedMeans as ReweightedMeans,
        reweight as reweight,
    )
    from rankgauge.production.events import COLUMNS as COLUMNS, KINDS as KINDS, LogMapping as LogMapping
    from rankgauge.production.experiments import (
        ArmDifference as ArmDifference,
        DayDifference as DayDifference,
        ExperimentResult as ExperimentResult,
        compare_arms as compare_arms,
    )
    from rankgauge.production.generation import (
        GeneratedQuestions as GeneratedQuestions,
        ProposedQuestion as ProposedQuestion,
        generate_questions as generate_questions,
    )
    from rankgauge.production.interleaving import (
        Interleaved as Interleaved,
        InterleavingResult as InterleavingResult,
        analyze_interleaving as analyze_interleaving,
        interleave as interleave,
    )
    from rankgauge.production.log import (
        QUESTION_COLUMNS as QUESTION_COLUMNS,
        EventLog as EventLog,
        LogSummary as LogSummary,
    )
    from rankgauge.production.log_import import Fault as Fault, LogImport as LogImport, import_log as import_log
    from rankgauge.production.mapping_draft import draft_mapping as draft_mapping
    from rankgauge.production.metrics import (
        METRICS as METRICS,
        OnlineMetric as OnlineMetric,
        Threshold as Threshold,
        ThresholdCheck as ThresholdCheck,
    )
    from rankgauge.production.monitor import (
        Alert as Alert,
        Alerts as Alerts,
        HealthWeek as HealthWeek,
        ProductionHealth as ProductionHealth,
        Signal as Signal,
        find_alerts as find_alerts,
        production_health as production_health,
    )
    from rankgauge.production.online import online_metrics as online_metrics
    from rankgauge.production.online_result import (
        PERIODS as PERIODS,
        MetricChange as MetricChange,
        OnlineMetrics as OnlineMetrics,
        OnlineValue as OnlineValue,
        WeekChange as WeekChange,
    )
    from rankgauge.production.question_sets import (
        EvaluationQuestion as EvaluationQuestion,
        QuestionSet as QuestionSet,
        SetRefresh as SetRefresh,
    )
    from rankgauge.production.sampling import (
        QuestionSample as QuestionSample,
        SampledStratum as SampledStratum,
        sample_questions as sample_questions,
    )
    from rankgauge.production.spark_log import SparkLog as SparkLog
