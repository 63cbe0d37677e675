"""Planted faults by what they break, each a patch of the real code; `kamino.audit.planted_faults` lists all."""
