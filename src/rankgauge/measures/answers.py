"""Declarations of the measures of generated answers; `rankgauge.answers` computes the values.

A verdict says whether a text supports a claim (supported, contradicted, not stated) or whether a
text is relevant. A measure with nothing to judge is undefined and excluded from the mean. Missing
verdicts are counted, and give bounds for the value. Measures of overlap and similarity compare
texts and need no verdicts.
"""

from __future__ import annotations

from rankgauge.measures.declaration import Declaration, register

# Measures computed from verdicts, with their definitions.
_VERDICTS = {
    "ContextRelevance": "Contexts that are relevant to the question / contexts. Undefined without contexts.",
    "ContextPrecision": "Contexts that support a claim of the reference / contexts. Undefined "
    "without contexts or without a reference. Ru et al. 2024 (RAGChecker).",
    "ContextAP": "Average precision of the contexts; those that support a claim of the reference "
    "count as relevant: the mean, over the ranks r of relevant contexts, of the share of relevant "
    "contexts among the first r; 0 without a relevant context. With `like=ragas`, 1e-10 is added "
    "to the denominator.",
    "ContextRecall": "Claims of the reference that some context supports / claims of the "
    "reference. With `like=ragas` or `like=deepeval`, the denominator counts only claims that have "
    "a verdict.",
    "Faithfulness": "Groundedness: claims of the answer that some context supports / claims of "
    "the answer. Without contexts, no claim is supported. With `like=ragas`, the denominator "
    "counts only claims that have a verdict. With `like=deepeval`, only contradicted claims lower "
    "the value, and it is 1 for an answer without claims. With `like=ragchecker`, it is 0 for an "
    "answer without claims.",
    "Contradicted": "Claims of the answer that some context contradicts and none supports / "
    "claims of the answer. With `NotStated`, the hallucination rate.",
    "NotStated": "Claims of the answer that no context supports or contradicts / claims of the "
    "answer. With `Contradicted`, the hallucination rate.",
    "AnswerRelevance": "Claims of the answer that address the question / claims of the answer.",
    "Completeness": "Claims of the reference that the answer supports / claims of the reference; 0 without an answer.",
    "AnswerPrecision": "Claims of the answer that the reference supports / claims of the answer.",
    "AnswerCorrectness": "The harmonic mean of `Completeness` and `AnswerPrecision`; 0 without an "
    'answer and for an answer without claims, such as "I don\'t know".',
    "NoiseFromUseful": "Noise sensitivity: claims of the answer that the reference does not "
    "support, but a context that supports a claim of the reference does / claims of the answer. "
    "Ru et al. 2024.",
    "NoiseFromOthers": "Noise sensitivity: claims of the answer that the reference does not "
    "support and that are supported only by contexts that support no claim of the reference / "
    "claims of the answer. Ru et al. 2024.",
    "ContextUtilization": "Claims of the reference that both a context and the answer support / "
    "claims of the reference that a context supports. Undefined if the contexts support none. Ru "
    "et al. 2024.",
    "SelfKnowledge": "Claims of the answer that the reference supports, but no context does / "
    "claims of the answer. Ru et al. 2024.",
    "Hallucination": "Claims of the answer that neither a context nor the reference supports / "
    "claims of the answer: hallucination as RAGChecker computes it. Ru et al. 2024.",
    "CitationPrecision": "Citations whose context supports the sentence that cites it / "
    "citations. A citation of a context that does not exist lowers the value. Undefined without "
    "citations.",
    "CitationRecall": "Claims of the answer that a cited context supports / claims of the answer.",
    "Nuggets": "The mean over all nuggets of 1 (supported by the answer), 0.5 (partly supported), "
    "or 0. Pradeep et al. 2024 (AutoNuggetizer).",
    "StrictNuggets": "Nuggets that the answer supports / nuggets; partial support counts 0.",
    "VitalNuggets": "`Nuggets` over the vital nuggets only.",
    "StrictVitalNuggets": "`StrictNuggets` over the vital nuggets only.",
    "Abstention": 'Whether the system abstains: the mean is the rate of "I don\'t know".',
    "WrongAbstention": "Whether the system abstains although the question can be answered; "
    "undefined for other questions.",
    "RightAbstention": "Whether the system abstains if the collection cannot answer the question; "
    "undefined for other questions.",
}
_LIKE = {"ContextAP", "ContextRecall", "Faithfulness"}  # measures with the parameter `like`
# Measures for which lower is better.
_LOWER = {
    "Contradicted",
    "NotStated",
    "NoiseFromUseful",
    "NoiseFromOthers",
    "Hallucination",
    "Abstention",
    "WrongAbstention",
}
# Measures computed from the texts of answers, with their definitions.
_TEXTS = {
    "ExactMatch": "Whether the answer equals a reference answer, ignoring surrounding white "
    "space; 0 without an answer.",
    "NormalizedMatch": "Whether the answer equals a reference answer, ignoring case, punctuation, "
    "articles, and repeated spaces; 0 without an answer. Rajpurkar et al. 2016 (SQuAD).",
    "TokenF1": "The harmonic mean of the shares of common words in the answer and in the "
    "reference, normalized as in `NormalizedMatch`; the highest value over several references; 0 "
    "without an answer. Each Chinese or Japanese character is a word. Rajpurkar et al. 2016 "
    "(SQuAD).",
    "RougeL": "The harmonic mean of the shares of the longest common subsequence in the words of "
    "answer and reference, in lower case and unstemmed; the highest value over several "
    "references; 0 without an answer. Lin 2004 (ROUGE-L, F).",
    "KPrecision": "Words of the answer that occur in the contexts, normalized as in `TokenF1` / "
    "words of the answer. A lexical form of `Faithfulness`. Adlakha et al. 2024.",
    "QuotePrecision": "Quotations of three words or more in the answer that occur in a context, "
    "ignoring case and punctuation / quotations. Undefined without quotations.",
    "ContextIdPrecision": "Distinct contexts known to answer the question / distinct contexts, by identifier.",
    "ContextIdRecall": "Contexts known to answer the question that the model received / contexts "
    "known to answer the question, by identifier; 0 without contexts.",
    "AnswerSimilarity": "The cosine of the embeddings of answer and reference; the highest value "
    "over several references. Needs an encoder. A wrong answer with the words of the reference "
    "has a high value.",
    "QuestionSimilarity": "The cosine of the embeddings of answer and question. Needs an encoder.",
    "ContextSimilarity": "The mean over the contexts of the cosine of the embeddings of context "
    "and question. Needs an encoder.",
}
_COSINES = {"AnswerSimilarity", "QuestionSimilarity", "ContextSimilarity"}  # bounded by -1

for _name, _doc in _VERDICTS.items():
    register(
        Declaration(
            _name,
            _doc,
            {"like": None} if _name in _LIKE else {},
            undefined="skip",
            better="lower" if _name in _LOWER else "higher",
            reads="verdicts",
        )
    )
register(
    Declaration(
        "Criterion",
        "Whether the answer meets the user's criterion of this name: `Criterion(name=polite)`. "
        "Undefined without an answer.",
        {},
        required=("name",),
        undefined="skip",
        reads="verdicts",
    )
)
for _name, _doc in _TEXTS.items():
    _low = -1.0 if _name in _COSINES else 0.0
    register(Declaration(_name, _doc, {}, bounds=(_low, 1.0), undefined="skip", reads="answers"))
