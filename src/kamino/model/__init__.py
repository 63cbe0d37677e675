"""The distribution of one tuple, behind one protocol."""
