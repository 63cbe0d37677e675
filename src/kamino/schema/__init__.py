"""Attributes, schema files, and the codec between raw values and codes."""
