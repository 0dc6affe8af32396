"""Paired tests, intervals, corrections, power, agreement, and choice models, on plain arrays.

Queries are the unit of tests: `differences` has one number per query, the value of system A minus
that of system B, with shape (Q,), or (Q, M) for M comparisons on the same queries. Results are
deterministic: random draws come from a seed, and sums that are compared are sums of integers below
2**53, which are exact in any order, so counts do not depend on the BLAS, the number of threads, or
the block size. Two sums are equal if they differ by less than 1e-9 of the largest possible sum, so
that 0.1 + 0.2 ties with 0.3. Identical systems have difference 0 and p = 1, never NaN.
"""

from rankgauge.stats.agreement import (
    Agreement,
    cohen_kappa,
    krippendorff_alpha,
    percent_agreement,
    units_needed,
)
from rankgauge.stats.arrays import moments, seed_of
from rankgauge.stats.change_points import (
    FEWEST_PERIODS,
    ChangePoint,
    LinearTrend,
    find_change_points,
    first_change,
    linear_trend,
)
from rankgauge.stats.click_models import (
    ExpectedClicks,
    PositionModel,
    expected_clicks,
    fit_position_model,
)
from rankgauge.stats.clustered import ClusterSums, clustered_mean, clustered_proportion
from rankgauge.stats.corrections import benjamini_hochberg, bonferroni, holm
from rankgauge.stats.intervals import (
    Interval,
    effective_size,
    mean_interval,
    mean_lower_bound,
    skewness,
    weighted_mean_interval,
    wilson_interval,
)
from rankgauge.stats.judge_error import (
    Estimate,
    clustered_difference,
    clustered_rate,
    judge_gain,
    naive_rate,
    prediction_powered_mean,
    rogan_gladen,
)
from rankgauge.stats.paired_tests import (
    Bounds,
    PairedTest,
    bootstrap_interval,
    effect_size,
    non_inferiority,
    sign_test,
    t_interval,
    t_interval_from_moments,
    t_test,
    t_test_from_moments,
    wilcoxon,
)
from rankgauge.stats.plackett_luce import (
    NONE,
    NoneRate,
    PlackettLuce,
    fit_plackett_luce,
    none_rates,
    ranking_stages,
)
from rankgauge.stats.poisson_bootstrap import poisson_bootstrap_interval
from rankgauge.stats.power_analysis import (
    detectable_by_sign_test,
    detectable_difference,
    power,
    queries_needed,
    sign_test_power,
)
from rankgauge.stats.randomization import (
    RandomizationTest,
    max_t,
    pairwise_test,
    randomization_test,
    tukey_hsd,
)
from rankgauge.stats.sequential import (
    ConfidenceSequence,
    confidence_sequence,
    difference_variance,
    mixing_sd,
    variance_needed,
)
from rankgauge.stats.t_distribution import student_t_cdf, student_t_quantile

__all__ = [
    "FEWEST_PERIODS",
    "NONE",
    "Agreement",
    "Bounds",
    "ChangePoint",
    "ClusterSums",
    "ConfidenceSequence",
    "Estimate",
    "ExpectedClicks",
    "Interval",
    "LinearTrend",
    "NoneRate",
    "PairedTest",
    "PlackettLuce",
    "PositionModel",
    "RandomizationTest",
    "benjamini_hochberg",
    "bonferroni",
    "bootstrap_interval",
    "clustered_difference",
    "clustered_mean",
    "clustered_proportion",
    "clustered_rate",
    "cohen_kappa",
    "confidence_sequence",
    "detectable_by_sign_test",
    "detectable_difference",
    "difference_variance",
    "effect_size",
    "effective_size",
    "expected_clicks",
    "find_change_points",
    "first_change",
    "fit_plackett_luce",
    "fit_position_model",
    "holm",
    "judge_gain",
    "krippendorff_alpha",
    "linear_trend",
    "max_t",
    "mean_interval",
    "mean_lower_bound",
    "mixing_sd",
    "moments",
    "naive_rate",
    "non_inferiority",
    "none_rates",
    "pairwise_test",
    "percent_agreement",
    "poisson_bootstrap_interval",
    "power",
    "prediction_powered_mean",
    "queries_needed",
    "randomization_test",
    "ranking_stages",
    "rogan_gladen",
    "seed_of",
    "sign_test",
    "sign_test_power",
    "skewness",
    "student_t_cdf",
    "student_t_quantile",
    "t_interval",
    "t_interval_from_moments",
    "t_test",
    "t_test_from_moments",
    "tukey_hsd",
    "units_needed",
    "variance_needed",
    "weighted_mean_interval",
    "wilcoxon",
    "wilson_interval",
]
