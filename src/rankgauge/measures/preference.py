"""Measures of preferences: they read judgments of which document is preferred to which."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from rankgauge.core.ids import IntArray
from rankgauge.data.judged_run import JudgedRun, Values
from rankgauge.measures.declaration import measure

if TYPE_CHECKING:
    # Loaded where there are preferences.
    from rankgauge.data.preferences import PreferenceRun

# Whose preferences count: all, those with a document that was retrieved, those with both.
_Scope: TypeAlias = Literal["all", "any", "both"]


@measure(reads="preferences", trec="prefs_simp", judged_only=False)
def prefs_simp(run: PreferenceRun) -> Values:
    r"""Preferences kept: the share of all preferences that a ranking keeps.

    $$ prefs\_simp = \frac{\sum_g |\{ A \succ_g B : A \text{ above } B \}|}
    {\sum_g |\{ A \succ_g B \}|} $$

    g are the groups: what two of them prefer counts twice. A document that was not retrieved stands
    below all that were; where neither was, the preference is not kept. Undefined without such a
    preference.

    Use: whole rankings, judged by preferences.
    Beware: preferences of which neither document was retrieved pull it down. trec_eval puts equal
    scores the other way round for these measures.
    Source: Carterette, Bennett, Chickering and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as measure prefs_simp of trec_eval.
    """
    kept, given = _preferences(run, "all")
    return _share(JudgedRun.total(kept), JudgedRun.total(given))


@measure(reads="preferences", trec="prefs_simp_ret", judged_only=False)
def prefs_simp_ret(run: PreferenceRun) -> Values:
    r"""Preferences kept: the share kept of those of which both documents were retrieved.

    $$ prefs\_simp\_ret = \frac{\sum_g |\{ A \succ_g B : A \text{ above } B \}|}
    {\sum_g |\{ A \succ_g B \}|} $$

    g are the groups: what two of them prefer counts twice. Only preferences count of which both
    documents were retrieved. Undefined without such a preference.

    Use: collections that change, where a missing document says little.
    Beware: a run that retrieves little is judged by little. trec_eval puts equal scores the other
    way round for these measures.
    Source: Carterette, Bennett, Chickering and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as measure prefs_simp_ret of trec_eval.
    """
    kept, given = _preferences(run, "both")
    return _share(JudgedRun.total(kept), JudgedRun.total(given))


@measure(reads="preferences", trec="prefs_simp_imp", judged_only=False)
def prefs_simp_imp(run: PreferenceRun) -> Values:
    r"""Preferences kept: the share kept of those of which a document was retrieved.

    $$ prefs\_simp\_imp = \frac{\sum_g |\{ A \succ_g B : A \text{ above } B \}|}
    {\sum_g |\{ A \succ_g B \}|} $$

    g are the groups: what two of them prefer counts twice. A document that was not retrieved stands
    below all that were; a preference of which neither was does not count. Undefined without such a
    preference.

    Use: as prefs_simp, where what nobody retrieved is to be left out.
    Beware: what it is divided by depends on the run. trec_eval puts equal scores the other way
    round for these measures.
    Source: Carterette, Bennett, Chickering and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as measure prefs_simp_imp of trec_eval.
    """
    kept, given = _preferences(run, "any")
    return _share(JudgedRun.total(kept), JudgedRun.total(given))


@measure(reads="preferences", trec="prefs_pair", judged_only=False)
def prefs_pair(run: PreferenceRun) -> Values:
    r"""Pairs kept: the share of judgment groups that a ranking follows, a mean over pairs.

    $$ prefs\_pair = \frac{1}{|P|} \sum_{(A, B) \in P} \frac{|\{ g : A \succ_g B \}|}
    {|\{ g : A \succ_g B \}| + |\{ g : B \succ_g A \}|} $$

    P are the pairs with a preference, A the one that stands above. With one group it is prefs_simp.
    A document that was not retrieved stands below all that were; where neither was, the preference
    is not kept. Undefined without such a preference.

    Use: whole rankings, judged by preferences.
    Beware: preferences of which neither document was retrieved pull it down. trec_eval puts equal
    scores the other way round for these measures.
    Source: Carterette, Bennett, Chickering and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as measure prefs_pair of trec_eval.
    """
    kept, given = _pairs(run, "all")
    return _share(kept, given)


@measure(reads="preferences", trec="prefs_pair_ret", judged_only=False)
def prefs_pair_ret(run: PreferenceRun) -> Values:
    r"""Pairs kept: as prefs_pair, over the pairs of which both documents were retrieved.

    $$ prefs\_pair\_ret = \frac{1}{|P|} \sum_{(A, B) \in P} \frac{|\{ g : A \succ_g B \}|}
    {|\{ g : A \succ_g B \}| + |\{ g : B \succ_g A \}|} $$

    P are the pairs with a preference, A the one that stands above. With one group it is
    prefs_simp_ret. Only preferences count of which both documents were retrieved. Undefined without
    such a preference.

    Use: collections that change, where a missing document says little.
    Beware: a run that retrieves little is judged by little. trec_eval puts equal scores the other
    way round for these measures.
    Source: Carterette, Bennett, Chickering and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as measure prefs_pair_ret of trec_eval.
    """
    kept, given = _pairs(run, "both")
    return _share(kept, given)


@measure(reads="preferences", trec="prefs_pair_imp", judged_only=False)
def prefs_pair_imp(run: PreferenceRun) -> Values:
    r"""Pairs kept: as prefs_pair, over the pairs of which a document was retrieved.

    $$ prefs\_pair\_imp = \frac{1}{|P|} \sum_{(A, B) \in P} \frac{|\{ g : A \succ_g B \}|}
    {|\{ g : A \succ_g B \}| + |\{ g : B \succ_g A \}|} $$

    P are the pairs with a preference, A the one that stands above. With one group it is
    prefs_simp_imp. A document that was not retrieved stands below all that were; a preference of
    which neither was does not count. Undefined without such a preference.

    Use: as prefs_pair, where what nobody retrieved is to be left out.
    Beware: what it is divided by depends on the run. trec_eval puts equal scores the other way
    round for these measures.
    Source: Carterette, Bennett, Chickering and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as measure prefs_pair_imp of trec_eval.
    """
    kept, given = _pairs(run, "any")
    return _share(kept, given)


@measure(reads="preferences", trec="prefs_avgjg", judged_only=False)
def prefs_avgjg(run: PreferenceRun) -> Values:
    r"""Preferences kept by group: the mean over judgment groups of prefs_simp.

    $$ prefs\_avgjg = \frac{1}{|G|} \sum_{g \in G}
    \frac{|\{ A \succ_g B : A \text{ above } B \}|}{|\{ A \succ_g B \}|} $$

    One who gave many preferences weighs no more than another. A group without any counts 0. A
    document that was not retrieved stands below all that were; where neither was, the preference is
    not kept. Undefined without such a preference.

    Use: whole rankings, judged by preferences.
    Beware: preferences of which neither document was retrieved pull it down. trec_eval puts equal
    scores the other way round for these measures.
    Source: Carterette, Bennett, Chickering and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as measure prefs_avgjg of trec_eval.
    """
    kept, given = _preferences(run, "all")
    return _by_group(run, kept, given)


@measure(reads="preferences", trec="prefs_avgjg_ret", judged_only=False)
def prefs_avgjg_ret(run: PreferenceRun) -> Values:
    r"""Preferences kept by group: the mean over judgment groups of prefs_simp_ret.

    $$ prefs\_avgjg\_ret = \frac{1}{|G|} \sum_{g \in G}
    \frac{|\{ A \succ_g B : A \text{ above } B \}|}{|\{ A \succ_g B \}|} $$

    One who gave many preferences weighs no more than another. A group without any counts 0. Only
    preferences count of which both documents were retrieved. Undefined without such a preference.

    Use: collections that change, where a missing document says little.
    Beware: a run that retrieves little is judged by little. trec_eval puts equal scores the other
    way round for these measures.
    Source: Carterette, Bennett, Chickering and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as measure prefs_avgjg_ret of trec_eval.
    """
    kept, given = _preferences(run, "both")
    return _by_group(run, kept, given)


@measure(reads="preferences", trec="prefs_avgjg_imp", judged_only=False)
def prefs_avgjg_imp(run: PreferenceRun) -> Values:
    r"""Preferences kept by group: the mean over judgment groups of prefs_simp_imp.

    $$ prefs\_avgjg\_imp = \frac{1}{|G|} \sum_{g \in G}
    \frac{|\{ A \succ_g B : A \text{ above } B \}|}{|\{ A \succ_g B \}|} $$

    One who gave many preferences weighs no more than another. A group without any counts 0. A
    document that was not retrieved stands below all that were; a preference of which neither was
    does not count. Undefined without such a preference.

    Use: as prefs_avgjg, where what nobody retrieved is to be left out.
    Beware: what it is divided by depends on the run. trec_eval puts equal scores the other way
    round for these measures.
    Source: Carterette, Bennett, Chickering and Dumais (2008), Here or there: preference judgments
    for relevance, ECIR; as measure prefs_avgjg_imp of trec_eval.
    """
    kept, given = _preferences(run, "any")
    return _by_group(run, kept, given)


@measure(reads="preferences", trec="prefs_avgjg_Rnonrel", judged_only=False)
def prefs_avgjg_Rnonrel(run: PreferenceRun) -> Values:
    r"""Preferences kept: as prefs_avgjg, with as many other documents as relevant ones.

    $$ prefs\_avgjg\_Rnonrel = \frac{1}{|G|} \sum_{g \in G} \frac{kept_g}{given_g} $$

    Of R relevant documents (grade above 0) and N others in a group: where N is more, only the first
    R others of the ranking count; where it is less, R (R - N) preferences are added, kept where the
    relevant document was retrieved. Undefined where a group has nothing to count.

    Use: how many non-relevant documents were judged should not matter.
    Beware: counted as trec_eval does, which is not what it says of itself: where N is more than R
    and a group has one sub-group, each of the R is also held against all N, itself too, so a
    perfect ranking may come near 0. trec_eval puts equal scores the other way round for these
    measures.
    Source: measure prefs_avgjg_Rnonrel of trec_eval.
    """
    evened = run.evened()
    kept, given = evened[:, :, 0], evened[:, :, 1]
    # Of the groups that a query does not have nothing is said.
    there = np.arange(given.shape[1]) < run.groups()[:, None]
    shares = _by_group(run, kept, given)
    return np.where((there & (given == 0)).any(axis=1), np.nan, shares)


@measure(reads="preferences", trec="prefs_avgjg_Rnonrel_ret", judged_only=False)
def prefs_avgjg_Rnonrel_ret(run: PreferenceRun) -> Values:
    r"""Preferences kept: as prefs_avgjg_Rnonrel, among the documents retrieved.

    $$ prefs\_avgjg\_Rnonrel\_ret = \frac{1}{|G|} \sum_{g \in G} \frac{kept_g}{given_g} $$

    Of R relevant documents (grade above 0) and N others in a group: where N is more, only the first
    R others of the ranking count; where it is less, R (R - N) preferences are added, kept where the
    relevant document was retrieved. Only documents that were retrieved count. Undefined where a
    group has nothing to count.

    Use: how many non-relevant documents were judged should not matter.
    Beware: counted as trec_eval does, which is not what it says of itself: where N is more than R
    and a group has one sub-group, each of the R is also held against all N, itself too, so a
    perfect ranking may come near 0. Where R is more, what is added is divided by all relevant
    documents, retrieved or not. trec_eval puts equal scores the other way round for these measures.
    Source: measure prefs_avgjg_Rnonrel_ret of trec_eval.
    """
    evened = run.evened()
    kept, given = evened[:, :, 2], evened[:, :, 3]
    # Of the groups that a query does not have nothing is said.
    there = np.arange(given.shape[1]) < run.groups()[:, None]
    shares = _by_group(run, kept, given)
    return np.where((there & (given == 0)).any(axis=1), np.nan, shares)


@measure(
    reads="preferences", trec="prefs_num_prefs_poss", bounds=(0.0, math.inf), better="neither",
    mean="sum", judged_only=False,
)  # fmt: skip
def prefs_num_prefs_poss(run: PreferenceRun) -> Values:
    """Preferences in number: how many the judgments hold.

    Use: beside a share, to see of how many it is.
    Beware: the mean is a sum over the queries.
    Source: measure prefs_num_prefs_poss of trec_eval.
    """
    counts = run.counts()
    return _of_query(counts[:, :, 2:])


@measure(
    reads="preferences", trec="prefs_num_prefs_ful", bounds=(0.0, math.inf), better="higher",
    mean="sum", judged_only=False,
)  # fmt: skip
def prefs_num_prefs_ful(run: PreferenceRun) -> Values:
    """Preferences kept in number: how many of all a ranking keeps.

    Use: beside a share, to see of how many it is.
    Beware: the mean is a sum over the queries.
    Source: measure prefs_num_prefs_ful of trec_eval.
    """
    counts = run.counts()
    return _of_query(counts[:, :, :2])


@measure(
    reads="preferences", trec="prefs_num_prefs_ful_ret", bounds=(0.0, math.inf), better="higher",
    mean="sum", judged_only=False,
)  # fmt: skip
def prefs_num_prefs_ful_ret(run: PreferenceRun) -> Values:
    """Preferences kept in number: how many of those of which both were retrieved.

    Use: beside a share, to see of how many it is.
    Beware: the mean is a sum over the queries.
    Source: measure prefs_num_prefs_ful_ret of trec_eval.
    """
    counts = run.counts()
    return _of_query(counts[:, :, :1])


def _preferences(run: PreferenceRun, scope: _Scope) -> tuple[IntArray, IntArray]:
    """(Q, G) the preferences that are kept, and all that there are."""
    both, one, of_both, of_one, of_none = np.moveaxis(run.counts(), 2, 0)
    if scope == "both":
        return both, of_both
    return both + one, of_both + of_one + (of_none if scope == "all" else 0)


def _pairs(run: PreferenceRun, scope: _Scope) -> tuple[Values, Values]:
    """(Q,) the pairs that are kept, and all that there are."""
    both, one, of_both, of_one, of_none = run.pairs().T
    if scope == "both":
        return both, of_both
    return both + one, of_both + of_one + (of_none if scope == "all" else 0.0)


def _by_group(run: PreferenceRun, kept: IntArray, given: IntArray) -> Values:
    """The mean share over the groups; NaN where none has anything to share."""
    shares = np.where(given > 0, kept / np.maximum(given, 1), 0.0)
    groups = np.maximum(run.groups(), 1)
    return np.where((given > 0).any(axis=1), JudgedRun.total(shares) / groups, np.nan)


def _share(kept: IntArray | Values, given: IntArray | Values) -> Values:
    return np.where(given > 0, kept / np.maximum(given, 1), np.nan)


def _of_query(counts: IntArray) -> Values:
    """(Q,) the counts of all groups together."""
    return JudgedRun.total(counts.reshape(len(counts), -1))
