"""The functions of ``rankgauge.tutorials.functional``, under the name that tutorials import."""

from rankgauge.tutorials.functional import *  # noqa: F403 - all of it
from rankgauge.tutorials.functional import __all__  # noqa: F401 - the same names
