"""Attributes that follow another closely: dependencies, step functions, conditional quantiles."""
