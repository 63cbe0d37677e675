"""Runs dpmm: PrivBayes, MST and AIM."""
