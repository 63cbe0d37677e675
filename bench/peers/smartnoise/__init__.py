"""Runs SmartNoise: MST and PATE-CTGAN."""
