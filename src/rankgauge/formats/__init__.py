"""Readers and writers of files, mappings, data frames and rows, each to and from a ``PairTable``."""
