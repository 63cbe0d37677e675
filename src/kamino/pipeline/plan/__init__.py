"""What a run will do, before it opens a private row."""
