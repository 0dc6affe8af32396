"""Declarations of measures, and their registry.

A declaration identifies a measure: its name, parameters, direction, bounds, kind of mean, and
input. Most measures have a kernel, which computes the values from a judged run. Measures computed
elsewhere (from verdicts on answers, from click logs) are registered without a kernel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rankgauge.core.grammar import VOCABULARY, Value, plain_key
from rankgauge.errors import UnknownName

Values: TypeAlias = npt.NDArray[np.float64]
Kernel: TypeAlias = Callable[..., Values]
TieMean: TypeAlias = Kernel | Literal["", "linear", "same"]
Params: TypeAlias = Mapping[str, Value]

# Kinds of judgments that consist of more than a grade; `rankgauge.data` has a class for each.
SPECIAL = ("subtopics", "samples", "preferences")


class Declaration(NamedTuple):
    """Identity of a measure, used by the parser, documentation, command line, and tests.

    Attributes:
        name: The usual name in the literature.
        doc: Documentation: formula, when to use the measure, source.
        defaults: Optional parameters with their default values.
        required: Parameters without a default.
        kernel: Function from the input to values: ``(data, *, parameters) -> (Q,) float64``, NaN
            where undefined. None if the values are computed elsewhere.
        at: Parameter written after ``@``.
        trec: Names of the measure in trec_eval, with the parameters that each implies; ``{k}`` is
            the cut-off.
        also: Other accepted names, with the parameters that each implies.
        shown: Names printed for certain parameters: ``F2`` for ``F(beta=2)``.
        bounds: Smallest and largest possible value.
        better: Whether higher or lower is better; ``neither`` for counts.
        mean: How values are averaged.
        undefined: How undefined values count in the mean.
        reads: Input: ``grades``, binary relevance (``binary``), or whether documents are judged
            (``judged``) in a judged run; one of `SPECIAL`; or data of another package, such as
            ``verdicts``.
        curve: Values of `at` that the name without a value expands to.
        stated: Parameters always printed in the name, since tools differ in their defaults.
        tie_mean: How to compute the mean over all orders of tied documents: ``linear`` (the kernel
            is a sum of rank weights, and is applied to an averaged run), ``same`` (the order has no
            effect), or a function with the signature of the kernel. Empty without a closed form.
        monotone: Whether moving a document with a higher grade up never lowers the value, so that
            ordering ties by grade gives the highest and the lowest value.
        variants: Fields that differ for a value of a parameter.
        without: Parameters that a variant does not have.
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
    variants: Mapping[tuple[str, Value], Mapping[str, Any]] = MappingProxyType({})
    without: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return (*self.required, *(word for word in self.defaults if word not in self.without))

    def variant(self, params: Params) -> Declaration:
        """Return the declaration for these parameters."""
        declaration = self
        for (word, value), traits in self.variants.items():
            if params.get(word, self.defaults.get(word)) == value:
                declaration = declaration._replace(**traits)
        return declaration


DECLARED: dict[str, Declaration] = {}
NAMES: dict[str, tuple[str, Params]] = {}
TREC: dict[str, tuple[str, Params, str]] = {}


def register(declared: Declaration) -> None:
    """Register a measure for the parser, the documentation, and the command line.

    Raises:
        UnknownName: If a parameter is not in the vocabulary.
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
    **traits: Any,
) -> Callable[[Kernel], Kernel]:
    """Declare a kernel over judged runs; its name and keywords become those of the measure.

    Args:
        trec: As in `Declaration`; a name without a mapping implies no parameters.
        also: As in `Declaration`, with the same short form.
        judged_only: Whether the measure has the parameter ``judged_only``.
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
