"""Tables that are read part by part, as often as somebody asks, and never held as a whole."""
