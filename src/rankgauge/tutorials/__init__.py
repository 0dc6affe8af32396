"""Functions and classes that tutorials use, thin over ``evaluate()``."""
