"""Evaluations over time: a store that keeps them, and what can be said about any two or all.

* ``entries``: an evaluation as it is kept, and the way back
* ``changes``: two evaluations, query by query
* ``trends``: many, in the order in which they were saved
* ``store``: the database that holds them
"""

from rankgauge.history.changes import Change, Step
from rankgauge.history.entries import Entry
from rankgauge.history.store import History
from rankgauge.history.trends import Point, Trend

__all__ = ["Change", "Entry", "History", "Point", "Step", "Trend"]
