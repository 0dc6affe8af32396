"""The class of judgments that measures read, by `Declaration.reads`.

Loaded only where a measure asks for such judgments.
"""

from __future__ import annotations

from rankgauge.data.preference_qrels import PreferenceQrels
from rankgauge.data.sampled_qrels import SampledQrels
from rankgauge.data.special_qrels import SpecialQrels
from rankgauge.data.subtopic_qrels import SubtopicQrels

SPECIAL_QRELS: dict[str, type[SpecialQrels]] = {
    kind.reads: kind for kind in (PreferenceQrels, SampledQrels, SubtopicQrels)
}
