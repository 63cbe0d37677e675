"""Values as codes `0 .. size - 1` and back, and codes of several attributes as one."""
