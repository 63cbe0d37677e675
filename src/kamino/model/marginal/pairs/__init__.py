"""Pairs and triples: which are scored, chosen and measured, round by round."""
