"""The edge where tables come in and go out."""
