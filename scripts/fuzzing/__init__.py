"""Malformed files and names, made from a seed, and what may come of reading them."""
