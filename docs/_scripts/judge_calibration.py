"""Accuracy of judge-error correction: simulated judges, and judges on human labels.

    RANKGAUGE_TEST_DATA=/path/to/data python docs/_scripts/judge_calibration.py [--write]

``--write`` writes the tables into docs/explain/judge-calibration.md. The folder contains
``rag/expertqa`` and ``rag/mtrag``. All seeds are fixed.
"""

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import numpy as np
from page_tables import write_tables
from scipy.stats import spearmanr

from rankgauge import Baseline, Evaluation, compare, gate, stats
from rankgauge.answers import (
    AnswerRecord,
    AnswerSet,
    Calibration,
    Citation,
    ClaimSet,
    Context,
    Item,
    RuleJudge,
    Verdict,
    calibrate,
    correct_means,
    items_of,
    judges,
    sentence_claims,
)
from rankgauge.gates import non_inferiority
from rankgauge.gates.non_inferiority import ALPHA_FAIL
from rankgauge.rendering.tables import Table
from rankgauge.stats import (
    USABLE,
    Estimate,
    judge_errors,
    krippendorff_alpha,
    mean_interval,
    naive_rate,
    prediction_powered_mean,
    prediction_powered_values,
    rogan_gladen,
)

PAGE = Path(__file__).parents[1] / "explain" / "judge-calibration.md"
# The true rate, sensitivity, and specificity of simulated judges.
JUDGES = (
    (0.7, 0.95, 0.6),
    (0.415, 0.94, 0.18),
    (0.7, 0.95, 0.9),
    (0.9, 0.95, 0.9),
    (0.2, 0.95, 0.9),
    (0.7, 0.9, 0.7),
    (0.5, 0.8, 0.8),
)
SIZES = ((200, 100), (200, 40), (1000, 100))
LABELS = (50, 100, 200, 500, 2000, 5000)
RATES = (0.2, 0.415, 0.5, 0.8, 0.9, 0.95)
MARK = re.compile(r"\s*\[\d+\]")
RATINGS = ("faithfulness", "completeness", "appropriateness", "naturalness")
SHARES = (0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.4)  # share of a claim's terms needed for support
LEAST_SHOWN = 0.1  # share of draws with an interval from which its coverage is printed
SAMPLES = 100
SAMPLE = 0.4  # share of questions with human labels, where all have them


# ---- simulated judges


def draw(
    rng: np.random.Generator, judge: tuple[float, float, float], items: int, labels: int, *, alike: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels of a judge, human labels (NaN from `labels` on), and the question of each item.

    For a question with several items, each item has the truth of the first with probability 0.5.
    """
    truth, sens, spec = judge
    questions = np.repeat(np.arange(items // alike), alike)
    own, shared = rng.random(len(questions)) < truth, rng.random(items // alike) < truth
    human = np.where(rng.random(len(questions)) < 0.5, own, shared[questions]).astype(float)
    right = rng.random(len(questions)) < np.where(human == 1, sens, spec)
    judged = np.where(right, human, 1 - human)
    human[labels:] = math.nan
    return judged, human, questions


def simulated(draws: int, alike: int = 1) -> Table:
    """Return how often each 95% interval contains the true rate."""
    rows = []
    for judge in JUDGES:
        for items, labels in SIZES if alike == 1 else SIZES[:1]:
            rows.append(coverage(judge, items * alike, labels * alike, draws=draws, alike=alike))
    columns = (
        "true rate",
        "sensitivity",
        "specificity",
        "items",
        "labels",
        "naive",
        "people only",
        "prediction-powered",
        "Rogan-Gladen",
        "withheld",
    )
    return Table(columns=columns, rows=tuple(rows))


def coverage(judge: tuple[float, float, float], items: int, labels: int, *, draws: int, alike: int) -> tuple:
    """Return a row of the table: coverage and mean width of each interval."""
    rng = np.random.default_rng(17)
    found: dict[str, list[Estimate]] = {}
    for _ in range(draws):
        judged, human, questions = draw(rng, judge, items, labels, alike=alike)
        found.setdefault("naive", []).append(naive_rate(judged, questions))
        given = (judged, human, questions)
        found.setdefault("people", []).append(prediction_powered_mean(*given, power=0.0))
        found.setdefault("ppi", []).append(prediction_powered_mean(*given))
        # Labels on other items: the labelled items do not count in the rate.
        more = draw(rng, judge, labels, labels, alike=alike)
        parts = [np.concatenate(both) for both in zip(more, draw(rng, judge, items, 0, alike=alike), strict=True)]
        parts[2] = np.repeat(np.arange(len(parts[0]) // alike), alike)
        weights = np.arange(len(parts[0])) >= labels
        found.setdefault("rg", []).append(rogan_gladen(*parts, weights))
    cells = {name: _covered(some, judge[0]) for name, some in found.items()}
    withheld = sum(math.isnan(each.value) for each in found["rg"]) / draws
    return (
        f"{judge[0]:g}",
        f"{judge[1]:g}",
        f"{judge[2]:g}",
        items,
        labels,
        cells["naive"],
        cells["people"],
        cells["ppi"],
        cells["rg"],
        f"{withheld:.0%}",
    )


def usable(draws: int) -> Table:
    """Return how often a judge is usable, by the true rate and the number of labels."""
    rows = []
    for sens, spec, alike in ((0.95, 0.9, 1), (0.95, 0.9, 4), (0.8, 0.75, 1), (0.94, 0.18, 1)):
        for rate in RATES:
            cells = [usable_share((rate, sens, spec), labels, draws, alike) for labels in LABELS]
            rows.append((f"{sens:g}", f"{spec:g}", alike, f"{rate:g}", *(f"{share:.1%}" for share in cells)))
    columns = (
        "sensitivity",
        "specificity",
        "labels per question",
        "true rate",
        *(f"{labels:,} labels" for labels in LABELS),
    )
    return Table(columns=columns, rows=tuple(rows))


def usable_share(judge: tuple[float, float, float], labels: int, draws: int, alike: int = 1) -> float:
    """Return the share of draws in which the judge is usable."""
    rng = np.random.default_rng(23)
    found = 0
    for _ in range(draws):
        errors = judge_errors(*draw(rng, judge, labels, labels, alike=alike))
        found += not errors.reason and errors.gain.low >= USABLE
    return found / draws


def _covered(some: list[Estimate], truth: float) -> str:
    shown = [each for each in some if not math.isnan(each.value)]
    if len(shown) < LEAST_SHOWN * len(some):
        return "withheld"
    inside = sum(each.low <= truth <= each.high for each in shown) / len(shown)
    return f"{inside:.1%} ({sum(each.width for each in shown) / len(shown):.2f})"


# ---- gates and comparisons of simulated systems

MARGIN, QUESTIONS, CLAIMS = 0.05, 400, 3
# Sensitivity and specificity on the answers of the baseline and of the new system, and labels.
PAIRS = (
    ((0.94, 0.18), (0.94, 0.18), 750),
    ((0.95, 0.9), (0.95, 0.9), 200),
    ((0.95, 0.9), (0.95, 0.9), 1000),
    ((0.85, 0.85), (0.85, 0.85), 1000),
    ((0.95, 0.9), (0.9, 0.9), 200),
    ((0.95, 0.9), (0.95, 0.8), 200),
)
IDS = [f"q{n}" for n in range(QUESTIONS)]
# Draws by true loss: small rates of errors need more draws than power.
DRAWS = {0.0: 500, 0.05: 1000, 0.1: 300}


def verdicts_of_gate(
    pair: tuple[tuple[float, float], tuple[float, float], int], loss: float, draws: int, *, both: int = 0
) -> tuple[Counter, Counter, Counter]:
    """Return verdicts of the gate without and with correction, and of a comparison.

    People label answers of the baseline, or the first `both` questions of both systems. The claims
    are supported at rates of 0.7 and 0.7 - loss; half of the time, they depend on the question.
    """
    rng = np.random.default_rng(29)
    raw, true, compared = Counter(), Counter(), Counter()
    # Slow, and not a part of the verdict.
    version = patch.object(metadata, "version", return_value="0")
    with version, patch.object(non_inferiority, "queries_to_decide", return_value=None):
        found = [_verdicts(pair, loss, rng, both) for _ in range(draws)]
    for counts, verdicts in zip((raw, true, compared), zip(*found, strict=True), strict=True):
        counts.update(verdict for verdict in verdicts if verdict)
    return raw, true, compared


def _verdicts(
    pair: tuple[tuple[float, float], tuple[float, float], int], loss: float, rng: np.random.Generator, both: int
) -> tuple[str, str, str]:
    """Return the verdicts of one draw; without correction only if nobody labels both systems."""
    before, after, labels = pair
    judged, human, questions = draw(rng, (0.6, *before), labels, labels)
    errors = judge_errors(judged, human, questions)
    gain = [errors.gain.value, errors.gain.low, errors.gain.high]
    usable = not errors.reason and errors.gain.low >= USABLE
    about = {"state": "usable", "gain": gain} if usable else {"state": "not usable"}
    hard = rng.random((QUESTIONS, 1))
    pairs, people = [], []
    for name, rate, (sens, spec) in (("old", 0.7, before), ("new", 0.7 - loss, after)):
        shared = rng.random((QUESTIONS, 1)) < 0.5
        truth = np.where(shared, hard, rng.random((QUESTIONS, CLAIMS))) < rate
        right = rng.random(truth.shape) < np.where(truth, sens, spec)
        values = np.where(right, truth, ~truth).mean(axis=1)
        one = Evaluation.from_values(name, IDS, {"Faithfulness": values.tolist()})
        pairs.append(replace(one, settings={"judge": {"name": "m", "person": True}}))
        known = zip(IDS[:both], truth.mean(axis=1).tolist(), strict=False)
        people.append({"people": dict(known)} if both else {})
    own = [
        replace(one, settings={"judge": {"name": "m", "measures": {"Faithfulness": about | labels}}})
        for one, labels in zip(pairs, people, strict=True)
    ]
    return (
        "" if both else verdict_of(*pairs),
        verdict_of(*own) if usable or both else "refused",
        str(compare(own, test="t").differences[0].verdict),
    )


def verdict_of(old: Evaluation, new: Evaluation) -> str:
    """Return the verdict of the gate on two evaluations."""
    rules = {"measures": {"Faithfulness": {"margin": MARGIN}}}
    return gate(new, rules=rules, baseline=Baseline.from_evaluation(old)).verdict


def gated() -> Table:
    """Return the verdicts of gate and comparison by judge and true loss."""
    rows = []
    for pair in PAIRS:
        for loss, draws in DRAWS.items():
            raw, true, compared = verdicts_of_gate(pair, loss, draws)
            cells = (
                raw["PASS"],
                true["PASS"],
                true["PASS unless rare collapse"],
                true["FAIL"],
                true["INCONCLUSIVE"],
                true["refused"],
                compared["worse"],
                compared["better"],
                compared["withheld"],
            )
            (sens, spec), (new_sens, new_spec), labels = pair
            rows.append(
                (
                    f"{sens:g} / {spec:g}",
                    f"{new_sens:g} / {new_spec:g}",
                    labels,
                    f"{loss:g}",
                    *(f"{count / draws:.1%}" for count in cells),
                )
            )
    columns = (
        "judge on baseline",
        "judge on new",
        "labels",
        "true loss",
        "PASS, uncorrected",
        "PASS",
        "PASS unless rare collapse",
        "FAIL",
        "INCONCLUSIVE",
        "refused",
        "worse",
        "better",
        "withheld",
    )
    return Table(columns=columns, rows=tuple(rows))


def labeled() -> Table:
    """Return the verdicts with labels of people on the same questions of both systems."""
    rows = []
    for pair in (PAIRS[4], PAIRS[0]):
        for both in (50, 100, 200):
            for loss, draws in DRAWS.items():
                _, true, compared = verdicts_of_gate(pair, loss, draws, both=both)
                verdicts = ("PASS", "PASS unless rare collapse", "FAIL", "INCONCLUSIVE")
                cells = (*map(true.get, verdicts), compared["worse"], compared["better"])
                (sens, spec), (new_sens, new_spec), _ = pair
                rows.append(
                    (
                        f"{sens:g} / {spec:g}",
                        f"{new_sens:g} / {new_spec:g}",
                        both,
                        f"{loss:g}",
                        *(f"{(count or 0) / draws:.1%}" for count in cells),
                    )
                )
    columns = (
        "judge on baseline",
        "judge on new",
        "questions labeled",
        "true loss",
        "PASS",
        "PASS unless rare collapse",
        "FAIL",
        "INCONCLUSIVE",
        "worse",
        "better",
    )
    return Table(columns=columns, rows=tuple(rows))


# ---- human labels


def read(data: Path, name: str) -> list[dict]:
    """Return the records of a file."""
    with gzip.open(data / "rag" / name / "answers.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


SUPPORT = {"complete": "supported", "partial": "not stated", "incomplete": "not stated"}


def expertqa(data: Path) -> tuple[list[AnswerSet], list[Verdict], list[Verdict]]:
    """Return the answers of each system, verdicts of the rules, and labels of experts.

    Each claim cites its evidence as one context.
    """
    sets: dict[str, list[AnswerRecord]] = {}
    people, items = [], []
    for row in read(data, "expertqa"):
        claims = [each for each in row["claims"] if each["support"] in SUPPORT]
        if not claims:
            continue
        record = AnswerRecord(
            row["id"],
            row["question"],
            row["answer"],
            tuple(
                Context(str(n), "\n".join(part["text"] for part in each["evidence"])) for n, each in enumerate(claims)
            ),
            citations=tuple(Citation(str(n), MARK.sub("", each["claim"])) for n, each in enumerate(claims)),
        )
        sets.setdefault(row["system"], []).append(record)
        for item in items_of(record, ClaimSet()):
            if item.relation == "citation-context":
                label = SUPPORT[claims[item.row]["support"]]
                people.append(Verdict(item.key, label, "expert"))
                items.append(item)
    judged = [each for each in RuleJudge().judge(items) if isinstance(each, Verdict)]
    return [AnswerSet(name, tuple(some)) for name, some in sorted(sets.items())], judged, people


def corrected(data: Path) -> Table:
    """Return citation precision by the rules, and corrected with labels on sampled questions."""
    sets, judged, people = expertqa(data)
    truth = {each.key: each.label == "supported" for each in people}
    said = {each.key: each.label == "supported" for each in judged}
    rng = np.random.default_rng(3)
    rows = []
    for one in sets:
        keys = {r.id: [i.key for i in items_of(r, ClaimSet()) if i.relation == "citation-context"] for r in one}
        true = np.mean([np.mean([truth[key] for key in some]) for some in keys.values()])
        first, hits, sums = None, np.zeros(3), np.zeros(3)
        for _ in range(SAMPLES):
            chosen = rng.random(len(keys)) < SAMPLE
            known = {key for some, there in zip(keys.values(), chosen, strict=True) if there for key in some}
            labels = [each for each in people if each.key in known]
            found = correct_means(one, judged, labels, "CitationPrecision").means[0]
            units = [
                (said[key], truth[key] if key in known else math.nan, question, 1 / len(some))
                for question, some in keys.items()
                for key in some
                if key in said
            ]
            some = (found.judged, found.prediction_powered, rogan_gladen(*map(np.array, zip(*units, strict=True))))
            first = first or some
            hits += [each.low <= true <= each.high for each in some]
            sums += [math.isnan(each.value) for each in some]
        shown = []
        for each, hit, gone in zip(first, hits, sums, strict=True):
            text = f"{interval(each)}; {hit / max(1, SAMPLES - gone):.0%}"
            shown.append(text if not gone else f"withheld in {gone / SAMPLES:.0%}")
        rows.append((one.system, len(keys), f"{true:.3f}", *shown))
    columns = ("system", "questions", "by the experts", "rules", "prediction-powered", "Rogan-Gladen")
    return Table(columns=columns, rows=tuple(rows))


def biases(found: Calibration) -> Table:
    """Return the biases in each relation."""
    return Table(
        columns=("judge", "group", "difference", "verdict"),
        rows=tuple(
            (each.relation, bias.group, interval(bias.difference, sign=True), bias.verdict)
            for each in found.relations
            for bias in each.biases
        ),
    )


def mtrag(data: Path) -> tuple[list[AnswerSet], Calibration]:
    """Return the answers of MTRAG rated faithful, and stored automatic scores of at least 0.5."""
    sets: dict[str, list[AnswerRecord]] = {}
    scores, people = {}, {}
    for row in read(data, "mtrag"):
        turn = f"{row['conversation_id']}-{row['turn']}"
        record = AnswerRecord(turn, row["question"], f"{row['model']}: {row['answer']}")
        sets.setdefault(row["model"], []).append(record)
        key = record.answer
        scores[key] = row["scores"]
        people[key] = float(np.mean(list(row["human"]["faithfulness"].values()))) >= 3.5
    answers = [AnswerSet(name, tuple(some)) for name, some in sorted(sets.items())]
    relations = []
    for name in ("rl_f", "bert_k_precision", "llm_judge"):
        judged, human, criteria = [], [], {name: "faithful"}
        for one in answers:
            for record in one:
                (item,) = (i for i in items_of(record, ClaimSet(), criteria) if i.relation == "criterion")
                labels = ("met", "not met")
                high = scores[record.answer][name] >= 0.5
                judged.append(Verdict(item.key, labels[not high], name))
                human.append(Verdict(item.key, labels[not people[record.answer]], "raters"))
        relations += calibrate([replace(one, criteria=criteria) for one in answers], judged, human).relations
    return answers, Calibration(tuple(relations))


def ratings(data: Path) -> Table:
    """Return the agreement of the raters of MTRAG, with answers and with turns as clusters."""
    rows = read(data, "mtrag")
    turns = [f"{row['conversation_id']}-{row['turn']}" for row in rows]
    raters = sorted({name for row in rows for name in row["human"]["faithfulness"]})
    out = []
    for rating in RATINGS:
        table = [[row["human"][rating].get(name, math.nan) for name in raters] for row in rows]
        alone = krippendorff_alpha(table, "ordinal")
        turn = krippendorff_alpha(table, "ordinal", clusters=turns)
        out.append(
            (rating, f"{alone.value:.3f}", f"[{alone.low:.3f}, {alone.high:.3f}]", f"[{turn.low:.3f}, {turn.high:.3f}]")
        )
    columns = ("rating", "ordinal alpha", "95% CI, answers alone", "95% CI, by turn")
    return Table(columns=columns, rows=tuple(out))


def graded(data: Path) -> Table:
    """Return mean faithfulness (0 to 1) of each model: by people, by rl_f, and corrected."""
    rows = read(data, "mtrag")
    rng = np.random.default_rng(5)
    out = []
    for model in sorted({row["model"] for row in rows}):
        some = [row for row in rows if row["model"] == model]
        human = np.array([(np.mean(list(row["human"]["faithfulness"].values())) - 1) / 3 for row in some])
        judged = np.array([row["scores"]["rl_f"] for row in some])
        turns = [row["conversation_id"] for row in some]
        known = np.where(rng.random(len(some)) < SAMPLE, human, math.nan)
        out.append(
            (
                model,
                len(some),
                int((~np.isnan(known)).sum()),
                f"{human.mean():.3f}",
                interval(naive_rate(judged, turns)),
                interval(prediction_powered_mean(judged, known, turns, power=0.0)),
                interval(prediction_powered_mean(judged, known, turns)),
            )
        )
    columns = ("answers of", "answers", "with labels", "by the raters", "by rl_f", "people only", "prediction-powered")
    return Table(columns=columns, rows=tuple(out))


def labeled_pairs(data: Path, draws: int) -> Table:
    """Return how often differences by labels of people are right for pairs of systems on MTRAG.

    Conversations are drawn with replacement, and people label each turn with probability `SAMPLE`.
    The ratings are moved so that the mean difference is 0, or a loss of the margin.
    """
    turns: dict[tuple[str, int], dict[str, dict]] = {}
    for row in read(data, "mtrag"):
        turns.setdefault((row["conversation_id"], row["turn"]), {})[row["model"]] = row
    talks = np.unique([talk for talk, _ in turns], return_inverse=True)[1]
    models = sorted(next(iter(turns.values())))
    rows = []
    for judge in ("rl_f", "bert_k_precision", "llm_judge"):
        for old, new in combinations(models, 2):
            said = np.array([each[new]["scores"][judge] - each[old]["scores"][judge] for each in turns.values()])
            true = np.array([_rating(each[new]) - _rating(each[old]) for each in turns.values()])
            cells = _rates_of_labels(said, true, talks, draws)
            rows.append((f"{old} to {new}", judge, f"{true.mean():+.3f}", f"{said.mean():+.3f}", *cells))
    columns = ("pair", "judge", "by the raters", "by the judge", "coverage", "width", "false PASS", "false FAIL")
    return Table(columns=columns, rows=tuple(rows))


def _rating(row: dict) -> float:
    return (float(np.mean(list(row["human"]["faithfulness"].values()))) - 1) / 3


def _rates_of_labels(said: np.ndarray, true: np.ndarray, talks: np.ndarray, draws: int) -> Iterator[str]:
    """Yield coverage and mean width of the interval, and the rates of false PASS and FAIL."""
    rng = np.random.default_rng(31)
    members = [np.flatnonzero(talks == talk) for talk in range(talks.max() + 1)]
    found = []
    for _ in range(draws):
        chosen = rng.integers(len(members), size=len(members))
        rows = np.concatenate([members[talk] for talk in chosen])
        clusters = np.repeat(np.arange(len(chosen)), [len(members[talk]) for talk in chosen])
        known = rng.random(len(rows)) < SAMPLE
        unseen = len(rows) / known.sum()
        by_people = np.where(known, true[rows], math.nan)
        low, high = mean_interval(prediction_powered_values(said[rows], by_people, clusters))
        lost, same = (
            stats.non_inferiority(
                at := prediction_powered_values(said[rows], by_people - true.mean() - loss, clusters),
                MARGIN,
                lowest=min(-unseen, at.min()),
                highest=max(unseen, at.max()),
            )
            for loss in (MARGIN, 0.0)
        )
        found.append((low <= true.mean() <= high, high - low, lost.not_inferior, same.p_worse < ALPHA_FAIL))
    covered, width, passed, failed = np.mean(found, axis=0)
    yield from (f"{covered:.1%}", f"{width:.2f}", f"{passed:.1%}", f"{failed:.1%}")


def interval(found: Estimate, *, sign: bool = False) -> str:
    """Format a number with its interval."""
    form = "+.3f" if sign else ".3f"
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def guesses(data: Path) -> Table:
    """Return the errors of each judge and whether it is usable."""
    sets, judged, people = expertqa(data)
    _, stored = mtrag(data)
    rows = [("rules, ExpertQA", calibrate(sets, judged, people).relations[0])]
    rows += [(f"{each.judge}, MTRAG", each) for each in stored.relations]
    return Table(
        columns=(
            "judge",
            "labels",
            "agreement",
            "base rate",
            "kappa",
            "sensitivity",
            "specificity",
            "Youden's J",
            "state",
        ),
        rows=tuple(
            (
                name,
                each.labels,
                f"{each.agreement.value:.3f}",
                f"{each.base_rate:.3f}",
                interval(each.kappa),
                interval(each.sensitivity),
                interval(each.specificity),
                interval(each.gain),
                each.state,
            )
            for name, each in rows
        ),
    )


def thresholds(data: Path) -> Table:
    """Return the rules with other shares of terms, on both halves of ExpertQA and on MTRAG.

    An answer of MTRAG counts as faithful if contexts support at least half of its claims.
    """
    halves: dict[str, list[tuple[bool, Item]]] = {"val": [], "test": []}
    for row in read(data, "expertqa"):
        for each in row["claims"]:
            if each["support"] in SUPPORT:
                text = "\n".join(part["text"] for part in each["evidence"])
                item = Item("citation-context", row["id"], MARK.sub("", each["claim"]), text)
                halves[row["split"]].append((SUPPORT[each["support"]] == "supported", item))
    answers = []
    for row in read(data, "mtrag"):
        contexts = tuple(Context(each["id"], each["text"]) for each in row["contexts"])
        record = AnswerRecord(row["id"], row["question"], row["answer"], contexts)
        some = [i for i in items_of(record, sentence_claims(record)) if i.relation == "answer-context"]
        if some:
            answers.append((np.mean(list(row["human"]["faithfulness"].values())), some))
    rows = []
    for share in SHARES:
        with patch.object(judges, "_ENOUGH", share):
            cells = [_two_rates([(true, _supports(item)) for true, item in some]) for some in halves.values()]
            shares = [_supported_share(some) for _, some in answers]
        rated = [mean for mean, _ in answers]
        pairs = [(mean >= 3.5, found >= 0.5) for mean, found in zip(rated, shares, strict=True)]
        rows.append((f"{share:.0%}", *cells, _two_rates(pairs), f"{spearmanr(shares, rated)[0]:.3f}"))
    columns = ("share of terms", "ExpertQA, tuned on", "ExpertQA, other half", "MTRAG", "MTRAG, Spearman")
    return Table(columns=columns, rows=tuple(rows))


def _supported_share(items: list[Item]) -> float:
    """Return the share of claims that some context supports."""
    rows = {item.row for item in items}
    return len({item.row for item in items if _supports(item)}) / len(rows)


def _supports(item: Item) -> bool:
    (found,) = RuleJudge().judge([item])
    return isinstance(found, Verdict) and found.label == "supported"


def _two_rates(pairs: list[tuple[bool, bool]]) -> str:
    """Format balanced accuracy, sensitivity, and specificity of pairs of truth and verdict."""
    true, found = (np.array(each) for each in zip(*pairs, strict=True))
    sens, spec = found[true].mean(), 1 - found[~true].mean()
    return f"{(sens + spec) / 2:.3f} ({sens:.2f}, {spec:.2f})"


def tables(data: Path, draws: int = 4000) -> Iterator[tuple[str, Table]]:
    """Yield the name and table of each section of the page."""
    yield "simulated", simulated(draws)
    yield "clusters", simulated(draws // 2, alike=4)
    yield "usable", usable(draws // 4)
    yield "gated", gated()
    yield "labeled", labeled()
    yield "pairs", labeled_pairs(data, 1000)
    yield "judges", guesses(data)
    sets, judged, people = expertqa(data)
    yield "biases", biases(calibrate(sets, judged, people))
    yield "thresholds", thresholds(data)
    yield "expertqa", corrected(data)
    yield "ratings", ratings(data)
    yield "graded", graded(data)


if __name__ == "__main__":
    write_tables(tables, PAGE)
