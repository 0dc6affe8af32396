"""Search spaces and proposals of configurations: a grid, or Optuna's sampler."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankgauge.core.arguments import is_number, of_kind
from rankgauge.core.libraries import library
from rankgauge.errors import InputError

# Maximum number of known proposals before the grid is searched for an unknown one.
_PATIENCE = 50


def key_of(configuration: Mapping[str, Any]) -> str:
    """Return a key that is equal for equal configurations."""
    return json.dumps(configuration, sort_keys=True, default=repr)


@dataclass(frozen=True)
class Space:
    """A search space: settings with values to try, and fixed settings."""

    axes: Mapping[str, tuple[Any, ...]]
    fixed: Mapping[str, Any]

    @classmethod
    def of(cls, space: Any, start: Any) -> Space:
        """Create a space from the values to try and the current configuration."""
        wanted = 'pass values for each setting: {"size": [128, 256], "k1": [0.9, 1.2]}'
        of_kind("the space", space or None, Mapping, wanted, where="explore")
        wanted = f"pass a value for each: {', '.join(map(str, space))}"
        of_kind("the current configuration", start, Mapping | None, wanted, where="start")
        axes = {str(name): _values(str(name), values) for name, values in space.items()}
        fixed = {} if start is None else {k: v for k, v in start.items() if k not in axes}
        missing = [] if start is None else [name for name in axes if name not in start]
        if missing:
            raise InputError(
                f"the current configuration has no {', '.join(missing)}",
                where="start",
                fix=f"pass a value for each: {', '.join(axes)}",
            )
        return cls(axes, fixed)

    @property
    def points(self) -> int:
        """Number of configurations."""
        return math.prod(map(len, self.axes.values()))

    def holds(self, configuration: Mapping[str, Any]) -> bool:
        """Return whether the values of a configuration are in the space."""
        return all(_position(values, configuration[name]) >= 0 for name, values in self.axes.items())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in itertools.product(*self.axes.values()):
            yield {**self.fixed, **dict(zip(self.axes, values, strict=True))}

    def at(self, places: Mapping[str, int]) -> dict[str, Any]:
        """Return the configuration with the values at these positions."""
        return {**self.fixed, **{name: values[places[name]] for name, values in self.axes.items()}}

    def places(self, configuration: Mapping[str, Any]) -> dict[str, int]:
        """Return the position of each value of a configuration in the space."""
        return {name: _position(values, configuration[name]) for name, values in self.axes.items()}


def _values(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence) or not len(values):
        raise InputError(
            f"got {values!r:.60} for the values of {name!r}",
            where="space",
            fix=f"pass a list; to fix the setting, a list of one value: {{{name!r}: [...]}}",
        )
    distinct: dict[str, Any] = {}
    for value in values:
        distinct.setdefault(key_of({"": value}), value)
    return tuple(distinct.values())


def _position(values: Sequence[Any], wanted: Any) -> int:
    keys = [key_of({"": value}) for value in values]
    key = key_of({"": wanted})
    return keys.index(key) if key in keys else -1


class Sampler:
    """Configurations proposed by Optuna's TPE sampler, without repetition.

    Settings with at least three numbers are ordinal, others categorical.
    """

    def __init__(self, space: Space, seed: int, *, lower: bool) -> None:
        optuna: Any = library("optuna", extra="tuning", of="method='optuna'")
        self._optuna = optuna
        axes = {
            name: tuple(sorted(values)) if all(map(is_number, values)) else values
            for name, values in space.axes.items()
        }
        self._space = Space(axes, space.fixed)
        kinds = optuna.distributions
        self._kinds = {
            name: kinds.IntDistribution(0, len(values) - 1)
            if len(values) > 2 and all(map(is_number, values))
            else kinds.CategoricalDistribution(tuple(range(len(values))))
            for name, values in axes.items()
        }
        # Optuna's seeds are unsigned 32-bit integers.
        sampler = optuna.samplers.TPESampler(seed=seed % 2**32)
        level = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            self._study = optuna.create_study(direction="minimize" if lower else "maximize", sampler=sampler)
        finally:
            optuna.logging.set_verbosity(level)
        self._known: dict[str, float] = {}
        self._asked: Any = None

    def propose(self) -> Mapping[str, Any] | None:
        """Return a configuration without a recorded value; None if there is none."""
        for _ in range(_PATIENCE):
            asked = self._study.ask(self._kinds)
            configuration = self._space.at(asked.params)
            known = self._known.get(key_of(configuration))
            if known is None:
                self._asked = asked
                return configuration
            self._report_to_optuna(asked, known)
        return next((candidate for candidate in self._space if key_of(candidate) not in self._known), None)

    def record(self, configuration: Mapping[str, Any], value: float) -> None:
        """Record the value of a configuration; NaN if it failed."""
        self._known[key_of(configuration)] = value
        places = self._space.places(configuration)
        if self._asked is not None and self._asked.params == places:
            self._report_to_optuna(self._asked, value)
        elif not math.isnan(value):
            trial = self._optuna.trial.create_trial(params=places, distributions=self._kinds, value=value)
            self._study.add_trial(trial)
        self._asked = None

    def _report_to_optuna(self, asked: Any, value: float) -> None:
        if math.isnan(value):
            self._study.tell(asked, state=self._optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(asked, value)
