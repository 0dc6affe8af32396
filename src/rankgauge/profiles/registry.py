"""Registry of profiles by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rankgauge.errors import UnknownName
from rankgauge.profiles.beir_mteb import BEIR, MTEB, MTEB_IGNORE_IDENTICAL_IDS, MTEB_SKIP_FIRST_RESULT
from rankgauge.profiles.deviations import Profile
from rankgauge.profiles.ir_measures import IR_MEASURES
from rankgauge.profiles.ml_tools import HAYSTACK, LLAMA_INDEX, SENTENCE_TRANSFORMERS, SKLEARN, TORCHMETRICS
from rankgauge.profiles.ranx import RANX
from rankgauge.profiles.trec import PYTREC_EVAL, TREC_EVAL_9, TREC_EVAL_10

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            TREC_EVAL_9,
            TREC_EVAL_10,
            PYTREC_EVAL,
            IR_MEASURES,
            RANX,
            BEIR,
            MTEB,
            MTEB_IGNORE_IDENTICAL_IDS,
            MTEB_SKIP_FIRST_RESULT,
            SENTENCE_TRANSFORMERS,
            TORCHMETRICS,
            SKLEARN,
            LLAMA_INDEX,
            HAYSTACK,
        )
    }
)
"""Profiles of other tools by name."""


def profile_of(name: str | Profile) -> Profile:
    """Return the profile with this name, or a given profile itself.

    Raises:
        UnknownName: If the name is unknown; the message lists the most similar names.

    Example:
        >>> profile_of("pytrec_eval").tool
        'pytrec_eval-terrier 0.5'
    """
    if isinstance(name, Profile):
        return name
    found = PROFILES.get(name)
    if found is None:
        raise UnknownName.of("profile", str(name), PROFILES)
    return found
