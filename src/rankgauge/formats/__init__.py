"""Ways in and out: files, mappings, data frames and rows, each to and from a ``PairTable``.

Nothing here knows what judgments or runs mean; a :class:`~rankgauge.formats.layout.Layout` says
which words, columns and numbers the two kinds of input have.
"""
