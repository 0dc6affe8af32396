"""Judging: people choose the best documents, and relevance is computed from their choices."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.judging.agreement import (
        AgreementRow as AgreementRow,
        DisputedSet as DisputedSet,
        JudgingAgreement as JudgingAgreement,
        disputed_sets as disputed_sets,
        measure_agreement as measure_agreement,
    )
    from rankgauge.judging.events import (
        IN_SIGHT as IN_SIGHT,
        ROLES as ROLES,
        Answer as Answer,
        Candidate as Candidate,
        Choice as Choice,
        Document as Document,
        GoldTask as GoldTask,
        Judge as Judge,
        Judgment as Judgment,
        Presentation as Presentation,
        Question as Question,
        Settings as Settings,
        Source as Source,
        judgments_of as judgments_of,
        next_pair as next_pair,
    )
    from rankgauge.judging.export import (
        JudgmentExport as JudgmentExport,
        export_judgments as export_judgments,
        write_label_studio as write_label_studio,
    )
    from rankgauge.judging.imports import JudgmentImport as JudgmentImport, import_judgments as import_judgments
    from rankgauge.judging.models import (
        ModelJudging as ModelJudging,
        ModelRanking as ModelRanking,
        ask_model as ask_model,
        rank_documents as rank_documents,
    )
    from rankgauge.judging.planning import (
        JudgeStatus as JudgeStatus,
        JudgingPlan as JudgingPlan,
        JudgingStatus as JudgingStatus,
        judging_status as judging_status,
        plan_judging as plan_judging,
    )
    from rankgauge.judging.pools import (
        PoolReport as PoolReport,
        PoolSource as PoolSource,
        build_pool as build_pool,
        pool_warning as pool_warning,
    )
    from rankgauge.judging.project import (
        JudgingProject as JudgingProject,
        Progress as Progress,
        QuestionProgress as QuestionProgress,
        Task as Task,
        hash_secret as hash_secret,
    )
    from rankgauge.judging.questions import (
        load_gold as load_gold,
        load_questions as load_questions,
        questions_of as questions_of,
        write_question as write_question,
    )
    from rankgauge.judging.relevance import (
        DocumentRelevance as DocumentRelevance,
        Relevance as Relevance,
        measure_relevance as measure_relevance,
    )
    from rankgauge.judging.store import Transaction as Transaction
    from rankgauge.judging.tasks import (
        QuestionState as QuestionState,
        fit_question as fit_question,
        is_resolved as is_resolved,
        next_documents as next_documents,
        split_documents as split_documents,
    )
    from rankgauge.judging.votes import (
        DocumentCredit as DocumentCredit,
        PairVotes as PairVotes,
        SideVotes as SideVotes,
        VoteReport as VoteReport,
        add_vote as add_vote,
        import_votes as import_votes,
        read_answers as read_answers,
        summarize_votes as summarize_votes,
        vote_report as vote_report,
    )
