"""The declaration of a measure, and the registry of all of them.

A declaration is what identifies a measure: its name, parameters, direction, bounds, kind of mean,
and what it reads. Most have a kernel, which computes the values from a judged run. A measure whose
values come from elsewhere (a judge of answers, a log of clicks) is registered without one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from rankgauge.core.grammar import VOCABULARY, Value, plain_key
from rankgauge.errors import UnknownName

Values: TypeAlias = npt.NDArray[np.float64]
Kernel: TypeAlias = Callable[..., Values]
TieMean: TypeAlias = Kernel | Literal["", "linear", "same"]
Params: TypeAlias = Mapping[str, Value]

# Judgments with more columns than a grade; each has a class in `rankgauge.data`.
SPECIAL = ("subtopics", "samples", "preferences")


class Traits(TypedDict, total=False):
    """Fields of a `Declaration` that a decorator states, or a variant has otherwise."""

    at: str
    shown: Mapping[str, Params]
    bounds: tuple[float, float]
    better: Literal["higher", "lower", "neither"]
    mean: Literal["arithmetic", "geometric", "sum"]
    undefined: Literal["zero", "skip"]
    reads: str
    curve: tuple[float, ...]
    stated: tuple[str, ...]
    tie_mean: TieMean
    monotone: bool
    variants: Mapping[tuple[str, Value], Traits]
    without: tuple[str, ...]


class Declaration(NamedTuple):
    """The identity of a measure: it feeds parser, documentation, command line and tests.

    Attributes:
        name: The usual name in the literature.
        doc: Its page: formula, when to use it, source.
        defaults: Its parameters with their defaults; `required` has those without.
        required: Parameters that must be given.
        kernel: Function from its input to values: ``(data, *, parameters) -> (Q,) float64``, NaN
            where undefined. None if the values come from elsewhere.
        at: The parameter after ``@``.
        trec: Names of the same measure in trec_eval, with the parameters that they stand for;
            ``{k}`` stands for the cut-off.
        also: Other names that are read, with the parameters that they stand for.
        shown: Names that are printed for some parameters: ``F2`` for ``F(beta=2)``.
        bounds: Smallest and largest possible value.
        better: Whether higher or lower is better; ``neither`` for counts.
        mean: How values are averaged.
        undefined: How undefined values count in the mean.
        reads: The input: of a judged run ``grades``, binary relevance (``binary``), or whether a
            document is judged (``judged``); one of `SPECIAL`; or the data of another package, such
            as ``verdicts``.
        curve: Values of `at` that the name without a value stands for.
        stated: Parameters that the name always states, since tools differ in their default.
        tie_mean: The mean over all orders of tied documents: ``linear``, by the kernel from an
            averaged run, since it is a sum of rank weights; ``same`` if the order has no effect; or
            a function like the kernel. Empty without a closed form.
        monotone: Whether moving a document with a higher grade up never lowers the value, so that
            the orders by grade are the best and the worst.
        variants: What is different for a value of a parameter.
        without: Of a variant, the parameters that it does not take.
    """

    name: str
    doc: str
    defaults: Params
    required: tuple[str, ...] = ()
    kernel: Kernel | None = None
    at: str = "k"
    trec: Mapping[str, Params] = MappingProxyType({})
    also: Mapping[str, Params] = MappingProxyType({})
    shown: Mapping[str, Params] = MappingProxyType({})
    bounds: tuple[float, float] = (0.0, 1.0)
    better: Literal["higher", "lower", "neither"] = "higher"
    mean: Literal["arithmetic", "geometric", "sum"] = "arithmetic"
    undefined: Literal["zero", "skip"] = "zero"
    reads: str = "binary"
    curve: tuple[float, ...] = ()
    stated: tuple[str, ...] = ()
    tie_mean: TieMean = ""
    monotone: bool = True
    variants: Mapping[tuple[str, Value], Traits] = MappingProxyType({})
    without: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All parameters."""
        return (*self.required, *(word for word in self.defaults if word not in self.without))

    def variant(self, params: Params) -> Declaration:
        """The declaration for these parameters."""
        found = self
        for (word, value), traits in self.variants.items():
            if params.get(word, self.defaults.get(word)) == value:
                found = found._replace(**traits)
        return found


DECLARED: dict[str, Declaration] = {}
NAMES: dict[str, tuple[str, Params]] = {}
TREC: dict[str, tuple[str, Params, str]] = {}


def register(declared: Declaration) -> None:
    """Register a measure for the parser, the documentation, and the command line.

    Raises:
        UnknownName: For a parameter that the vocabulary does not have.
    """
    for word in declared.words:
        if word not in VOCABULARY:
            raise UnknownName(f"{declared.name}: {word!r} is not in the vocabulary")
    DECLARED[declared.name] = declared
    for name, params in {declared.name: {}, **declared.also, **declared.shown}.items():
        NAMES[plain_key(name)] = (declared.name, params)
    for twin, params in declared.trec.items():
        stem, _, cut = twin.partition("{")
        TREC[stem] = (declared.name, params, declared.at if cut else "")


def measure(
    *,
    trec: str | Iterable[str] | Mapping[str, Params] = (),
    also: Iterable[str] | Mapping[str, Params] = (),
    judged_only: bool = True,
    **traits: Unpack[Traits],
) -> Callable[[Kernel], Kernel]:
    """Declare a kernel over judged runs: its name and keywords are those of the measure.

    Args:
        trec: See `Declaration`; names alone stand for the measure without parameters.
        also: The same.
        judged_only: Whether it takes the parameter of this name.
        traits: Other fields of the `Declaration`.
    """

    def declare(kernel: Kernel) -> Kernel:
        words = list(inspect.signature(kernel).parameters.values())[1:]
        defaults = {word.name: word.default for word in words if word.default is not word.empty}
        if judged_only:
            defaults["judged_only"] = False
        register(
            Declaration(
                kernel.__name__,
                inspect.cleandoc(kernel.__doc__ or ""),
                defaults,
                tuple(word.name for word in words if word.default is word.empty),
                kernel,
                trec=_with_params((trec,) if isinstance(trec, str) else trec),
                also=_with_params(also),
                **traits,
            )
        )
        return kernel

    return declare


def _with_params(names: Iterable[str] | Mapping[str, Params]) -> Mapping[str, Params]:
    return names if isinstance(names, Mapping) else {name: {} for name in names}
