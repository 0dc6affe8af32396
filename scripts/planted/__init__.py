"""The bugs that `plant_bugs.py` plants."""

from planted.benching import BUGS as _BENCHING
from planted.bug import Bug
from planted.checking import BUGS as _CHECKING
from planted.comparing import BUGS as _COMPARING
from planted.converting import BUGS as _CONVERTING
from planted.diversifying import BUGS as _DIVERSIFYING
from planted.explaining import BUGS as _EXPLAINING
from planted.measures import BUGS as _MEASURES
from planted.mending import BUGS as _MENDING
from planted.modelling import BUGS as _MODELLING
from planted.naming import BUGS as _NAMING
from planted.nesting import BUGS as _NESTING
from planted.packing import BUGS as _PACKING
from planted.preferring import BUGS as _PREFERRING
from planted.profiling import BUGS as _PROFILING
from planted.reading import BUGS as _READING
from planted.releasing import BUGS as _RELEASING
from planted.retrieving import BUGS as _RETRIEVING
from planted.shaping import BUGS as _SHAPING
from planted.starting import BUGS as _STARTING
from planted.tying import BUGS as _TYING
from planted.working import BUGS as _WORKING

__all__ = ["BUGS", "Bug"]

BUGS = (
    *_MEASURES, *_COMPARING, *_EXPLAINING, *_RELEASING, *_BENCHING, *_RETRIEVING, *_READING,
    *_STARTING, *_CHECKING, *_CONVERTING, *_MENDING, *_NESTING, *_PACKING, *_SHAPING,
    *_DIVERSIFYING, *_MODELLING, *_NAMING, *_PREFERRING, *_PROFILING, *_TYING, *_WORKING,
)  # fmt: skip
