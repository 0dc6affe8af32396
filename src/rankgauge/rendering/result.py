"""Base class of all results."""

from __future__ import annotations

from dataclasses import asdict
from inspect import isroutine
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rankgauge.core.lazy import registered
from rankgauge.errors import MissingExtra

if TYPE_CHECKING:
    from rankgauge.rendering.tables import Table


RESULT_SCHEMA = "rankgauge/result/1"  # of all results without a schema of their own
_LONGEST = 160  # maximum number of characters of a summary in `repr`


def _value(source: Any, path: str) -> Any:
    """Return an attribute of an attribute ...; methods are called, and an attribute of None is None."""
    for name in path.split("."):
        value = None if source is None else getattr(source, name)
        source = value() if isroutine(value) else value
    return source


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, str | float | int) else str(value)


class Result:
    """Base class of results: prints as a table, also in notebooks; converts to other formats.

    ``str(result)`` is the output of the command line. Use :func:`rankgauge.reports.render` for
    options of a report, such as values per query.
    """

    # Name of the published JSON schema.
    _schema: ClassVar[str] = RESULT_SCHEMA
    # Parts of `to_dict`: attributes or methods (`_value`) by name, or name=path; "*" for all attributes, "*=path" for
    # the items of a mapping.
    _attributes: ClassVar[str] = "rows=data_table.records notes=table.notes"
    # Attribute with the rows of `data_table`, and its columns as attributes of each row, by name, or name=path.
    _columns: ClassVar[str] = ""

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        # Otherwise dataclasses get a `__repr__` that prints all attributes.
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            fix = "" if name.startswith("_") else f"\nfix: {self._reading(name)}"
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{fix}")

    def _reading(self, name: str) -> str:
        """Return how to read single values, such as that of `name`, for messages."""
        import difflib

        near = difflib.get_close_matches(name, [each for each in dir(self) if each[0] != "_"], n=1, cutoff=0.65)
        return f"{f'did you mean {near[0]}? ' if near else ''}to_frame() and to_dict() have all values"

    def table(self) -> Table:
        """Return the result as one formatted table."""
        raise NotImplementedError

    def tables(self) -> tuple[Table, ...]:
        """Return all tables of a report; each `Detail` is for a full output only."""
        return (self.table(),)

    def data_table(self) -> Table:
        """Return the result as one table of unformatted values."""
        if not self._columns:
            return self.table()
        from rankgauge.rendering.tables import Table

        rows, *columns = (word.partition("=") for word in self._columns.split())
        return Table(
            tuple(name for name, _, _ in columns),
            tuple(
                tuple(_cell(_value(row, path or name)) for name, _, path in columns) for row in _value(self, rows[0])
            ),
        )

    def summary(self) -> str:
        """Return one or two sentences, with the conclusion first; by default, the title of `table`."""
        return ". ".join(getattr(self, "sentences", ())[:2]) or self.table().title

    def _data(self) -> dict[str, Any]:
        """Return the attributes for `to_dict`."""
        data: dict[str, Any] = {}
        for name, _, path in (word.partition("=") for word in self._attributes.split()):
            value = asdict(cast("Any", self)) if (name, path) == ("*", "") else _value(self, path or name)
            data |= value if name == "*" else {name: value}
        return data

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary of JSON types; NaN and infinity are None."""
        from importlib.metadata import version

        from rankgauge.core.escaping import plain

        kind = {"result": type(self).__name__} if self._schema == RESULT_SCHEMA else {}
        head = {"schema": self._schema, "rankgauge": version("rankgauge")}
        data: dict[str, Any] = plain(head | kind | self._data())
        return data

    def _part(self) -> dict[str, Any]:
        """Return the dictionary inside that of another result, without a name of a format that is not its own."""
        return self._data() if self._schema == RESULT_SCHEMA else self.to_dict()

    def to_json(self) -> str:
        """Return `to_dict` as JSON, following the published schema."""
        from rankgauge.core.escaping import dump_json

        return dump_json(self.to_dict())

    def to_frame(self) -> Any:
        """Return the rows of `to_csv` as a pandas data frame.

        Raises:
            MissingExtra: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra(
                "pandas is not installed", fix="pip install 'rankgauge[pandas]', or use to_csv()"
            ) from None
        table = self.data_table()
        return pd.DataFrame(list(table.rows), columns=list(table.columns))

    def to_markdown(self) -> str:
        """Return the result as Markdown."""
        return self._rendered("markdown")

    def to_latex(self) -> str:
        """Return the result as LaTeX tables (package booktabs)."""
        return self._rendered("latex")

    def to_html(self) -> str:
        """Return the result as escaped HTML elements."""
        return self._rendered("html")

    def to_csv(self) -> str:
        """Return `data_table` as CSV."""
        return self._rendered("csv")

    def __str__(self) -> str:
        return self._rendered("table").removesuffix("\n")

    def __repr__(self) -> str:
        from rankgauge.core.escaping import for_terminal

        text = for_terminal(self.summary())
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        return f"<{type(self).__name__}: {text}>"

    def _repr_html_(self) -> str:
        return self._rendered("html")

    def _rendered(self, format: str) -> str:
        return str(registered("render")(self, format))
