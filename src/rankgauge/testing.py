"""Checks for what others write: retrievers that keep to the contract."""
