"""Malformed files and names, made from a seed, and the outcomes of reading them."""
