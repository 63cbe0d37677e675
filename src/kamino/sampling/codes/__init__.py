"""Codes of values: compared, weighed, grouped, drawn and counted."""
