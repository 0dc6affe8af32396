"""Judgments and runs, joined and ranked once: what every measure reads."""
