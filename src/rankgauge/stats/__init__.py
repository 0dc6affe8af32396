"""Paired tests, intervals, corrections, power, agreement, and choice models, on plain arrays.

Queries are the unit of tests: `differences` has one number per query, the value of system A minus
that of system B, with shape (Q,), or (Q, M) for M comparisons on the same queries. Results are
deterministic: random draws come from a seed, and sums that are compared are sums of integers below
2**53, which are exact in any order, so counts do not depend on the BLAS, the number of threads, or
the block size. Two sums are equal if they differ by less than 1e-9 of the largest possible sum, so
that 0.1 + 0.2 ties with 0.3. Identical systems have difference 0 and p = 1, never NaN.
"""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.stats.agreement import (
        Agreement as Agreement,
        cohen_kappa as cohen_kappa,
        krippendorff_alpha as krippendorff_alpha,
        percent_agreement as percent_agreement,
        units_needed as units_needed,
    )
    from rankgauge.stats.arrays import moments as moments, seed_of as seed_of
    from rankgauge.stats.change_points import (
        CORRELATION as CORRELATION,
        FEWEST_WEEKS as FEWEST_WEEKS,
        ChangePoint as ChangePoint,
        DailySums as DailySums,
        DifferentWeek as DifferentWeek,
        LinearTrend as LinearTrend,
        different_week as different_week,
        find_change_points as find_change_points,
        first_change as first_change,
        linear_trend as linear_trend,
    )
    from rankgauge.stats.click_models import (
        ExpectedClicks as ExpectedClicks,
        PositionModel as PositionModel,
        expected_clicks as expected_clicks,
        fit_position_model as fit_position_model,
    )
    from rankgauge.stats.clustered import (
        ClusterSums as ClusterSums,
        ConfidenceSequence as ConfidenceSequence,
        clustered_mean as clustered_mean,
        clustered_proportion as clustered_proportion,
        confidence_sequence as confidence_sequence,
        difference_variance as difference_variance,
        mixing_sd as mixing_sd,
        variance_needed as variance_needed,
    )
    from rankgauge.stats.intervals import (
        Interval as Interval,
        effective_size as effective_size,
        mean_interval as mean_interval,
        mean_lower_bound as mean_lower_bound,
        ratio_interval as ratio_interval,
        skewness as skewness,
        student_t_cdf as student_t_cdf,
        student_t_quantile as student_t_quantile,
        weighted_mean_interval as weighted_mean_interval,
        wilson_interval as wilson_interval,
    )
    from rankgauge.stats.judge_error import (
        USABLE as USABLE,
        Estimate as Estimate,
        JudgeErrors as JudgeErrors,
        clustered_difference as clustered_difference,
        clustered_rate as clustered_rate,
        judge_errors as judge_errors,
        naive_rate as naive_rate,
        prediction_powered_mean as prediction_powered_mean,
        prediction_powered_values as prediction_powered_values,
        rogan_gladen as rogan_gladen,
    )
    from rankgauge.stats.paired_tests import (
        Bounds as Bounds,
        PairedTest as PairedTest,
        benjamini_hochberg as benjamini_hochberg,
        bonferroni as bonferroni,
        bootstrap_interval as bootstrap_interval,
        holm as holm,
        non_inferiority as non_inferiority,
        sign_test as sign_test,
        t_interval as t_interval,
        t_interval_from_moments as t_interval_from_moments,
        t_test as t_test,
        t_test_from_moments as t_test_from_moments,
        wilcoxon as wilcoxon,
    )
    from rankgauge.stats.plackett_luce import (
        NONE as NONE,
        NoneRate as NoneRate,
        PlackettLuce as PlackettLuce,
        choice_homogeneity as choice_homogeneity,
        fit_plackett_luce as fit_plackett_luce,
        none_rates as none_rates,
        ranking_stages as ranking_stages,
    )
    from rankgauge.stats.power_analysis import (
        detectable_difference as detectable_difference,
        planning_sd as planning_sd,
        power as power,
        queries_needed as queries_needed,
    )
    from rankgauge.stats.resampling import (
        RandomizationTest as RandomizationTest,
        max_t as max_t,
        poisson_bootstrap_interval as poisson_bootstrap_interval,
        randomization_test as randomization_test,
        tukey_hsd as tukey_hsd,
    )
