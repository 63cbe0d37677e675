"""Text to constraints and back: lexer, parsers, printer."""
