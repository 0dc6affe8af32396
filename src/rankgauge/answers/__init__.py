"""Evaluation of generated answers: claims, verdicts, measures, and the stage that limits them."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.answers.calibration import (
        CorrectedMean as CorrectedMean,
        CorrectedMeans as CorrectedMeans,
        PositionSwap as PositionSwap,
        calibrate as calibrate,
        correct_means as correct_means,
        position_swap as position_swap,
    )
    from rankgauge.answers.calibration_result import (
        Bias as Bias,
        Calibration as Calibration,
        MeasureCalibration as MeasureCalibration,
        RelationCalibration as RelationCalibration,
    )
    from rankgauge.answers.diagnosis import (
        CAUSES as CAUSES,
        AnswerDiagnosis as AnswerDiagnosis,
        Blame as Blame,
        BlamedAnswer as BlamedAnswer,
        blame as blame,
        diagnose_answers as diagnose_answers,
    )
    from rankgauge.answers.evaluation import (
        DEFAULT_MEASURES as DEFAULT_MEASURES,
        OVERLAP_MEASURES as OVERLAP_MEASURES,
        AnswerEvaluation as AnswerEvaluation,
        evaluate_answers as evaluate_answers,
    )
    from rankgauge.answers.judges import (
        CallableJudge as CallableJudge,
        Judge as Judge,
        MissingVerdict as MissingVerdict,
        RuleJudge as RuleJudge,
    )
    from rankgauge.answers.loading import read_answers as read_answers
    from rankgauge.answers.model_judge import (
        ClaimExtraction as ClaimExtraction,
        ModelJudge as ModelJudge,
        extract_claims as extract_claims,
    )
    from rankgauge.answers.runner import AnswerJudging as AnswerJudging, judge_answers as judge_answers
    from rankgauge.answers.scores import (
        JudgedAnswer as JudgedAnswer,
        Score as Score,
        Ternary as Ternary,
        score as score,
    )
    from rankgauge.answers.store import VerdictStore as VerdictStore, read_verdicts as read_verdicts
    from rankgauge.answers.verdicts import (
        LABELS as LABELS,
        AnswerRecord as AnswerRecord,
        AnswerSet as AnswerSet,
        Citation as Citation,
        Claim as Claim,
        ClaimSet as ClaimSet,
        Context as Context,
        Item as Item,
        Verdict as Verdict,
        cited as cited,
        counted_labels as counted_labels,
        items_of as items_of,
        quote_occurs as quote_occurs,
        sentence_claims as sentence_claims,
    )
    from rankgauge.core.abstention import (
        ABSTENTION_RULE as ABSTENTION_RULE,
        abstains as abstains,
        split_sentences as split_sentences,
    )
