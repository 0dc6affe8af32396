"""The profiles by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rankgauge.catalogue import unknown
from rankgauge.profiles.deviations import Profile
from rankgauge.profiles.trec import PYTREC_EVAL

__all__ = ["PROFILES", "profile_of"]

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {profile.name: profile for profile in (PYTREC_EVAL,)}
)
"""How other tools come to their numbers, by name."""


def profile_of(name: str | Profile) -> Profile:
    """The profile of this name, or the profile itself.

    Raises:
        UnknownName: With the nearest names.

    Example:
        >>> profile_of("pytrec_eval").tool
        'pytrec_eval-terrier 0.5'
    """
    if isinstance(name, Profile):
        return name
    found = PROFILES.get(name)
    if found is None:
        raise unknown("profile", str(name), PROFILES)
    return found
