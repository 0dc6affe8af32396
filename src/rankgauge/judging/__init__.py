"""Judging: people choose the best documents, and relevance is computed from their choices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankgauge.core.lazy import lazy_names

if TYPE_CHECKING:
    from rankgauge.judging.agreement import (
        AgreementRow as AgreementRow,
        DisputedSet as DisputedSet,
        JudgingAgreement as JudgingAgreement,
        disputed_sets as disputed_sets,
        measure_agreement as measure_agreement,
    )
    from rankgauge.judging.answers import (
        Answer as Answer,
        next_pair as next_pair,
    )
    from rankgauge.judging.copies import (
        ProjectCopy as ProjectCopy,
        backup as backup,
        restore as restore,
        write_events as write_events,
    )
    from rankgauge.judging.events import (
        ROLES as ROLES,
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
    )
    from rankgauge.judging.export import (
        JudgmentExport as JudgmentExport,
        export_judgments as export_judgments,
    )
    from rankgauge.judging.imports import (
        JudgmentImport as JudgmentImport,
        import_judgments as import_judgments,
    )
    from rankgauge.judging.models import (
        ModelJudging as ModelJudging,
        ModelRanking as ModelRanking,
        ask_model as ask_model,
        rank_documents as rank_documents,
    )
    from rankgauge.judging.planning import (
        JudgingPlan as JudgingPlan,
        plan_judging as plan_judging,
    )
    from rankgauge.judging.pools import (
        PoolReport as PoolReport,
        PoolSource as PoolSource,
        build_pool as build_pool,
        demo_project as demo_project,
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
    from rankgauge.judging.selection import (
        QuestionState as QuestionState,
        fit_question as fit_question,
        is_resolved as is_resolved,
        next_documents as next_documents,
    )
    from rankgauge.judging.status import (
        JudgeStatus as JudgeStatus,
        ProjectStatus as ProjectStatus,
        project_status as project_status,
    )
    from rankgauge.judging.store import (
        JudgingStore as JudgingStore,
        Transaction as Transaction,
    )
    from rankgauge.judging.votes import (
        DocumentCredit as DocumentCredit,
        PairVotes as PairVotes,
        SideVotes as SideVotes,
        VoteReport as VoteReport,
        VoteRow as VoteRow,
        add_vote as add_vote,
        import_votes as import_votes,
        read_answers as read_answers,
        read_votes as read_votes,
        summarize_votes as summarize_votes,
        vote_report as vote_report,
    )

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "agreement": "AgreementRow DisputedSet JudgingAgreement disputed_sets measure_agreement",
        "answers": "Answer next_pair",
        "copies": "ProjectCopy backup restore write_events",
        "pools": "PoolReport PoolSource build_pool demo_project pool_warning",
        "events": "ROLES Candidate Choice Document GoldTask Judge Judgment Presentation Question"
        " Settings Source judgments_of",
        "export": "JudgmentExport export_judgments",
        "imports": "JudgmentImport import_judgments",
        "models": "ModelJudging ModelRanking ask_model rank_documents",
        "planning": "JudgingPlan plan_judging",
        "project": "JudgingProject Progress QuestionProgress Task hash_secret",
        "questions": "load_gold load_questions questions_of write_question",
        "relevance": "DocumentRelevance Relevance measure_relevance",
        "selection": "QuestionState fit_question is_resolved next_documents",
        "status": "JudgeStatus ProjectStatus project_status",
        "store": "JudgingStore Transaction",
        "votes": "DocumentCredit PairVotes SideVotes VoteReport VoteRow add_vote"
        " import_votes read_answers read_votes summarize_votes vote_report",
    },
)
