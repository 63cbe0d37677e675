"""Schemas as files: read, checked, drafted from a table, and taken over from other tools."""
