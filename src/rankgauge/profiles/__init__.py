"""Profiles of other tools: how their computations deviate from ours."""

from rankgauge.profiles.deviations import Case, Deviation, Profile
from rankgauge.profiles.registry import PROFILES, profile_of

__all__ = ["PROFILES", "Case", "Deviation", "Profile", "profile_of"]
