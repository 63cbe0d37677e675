"""Planted faults by what they break, each a patch of the real code; `kamino.planted.all_faults` lists all."""
