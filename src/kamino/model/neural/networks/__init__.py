"""The networks of sub-models: their shapes, their steps, and training several at once."""
