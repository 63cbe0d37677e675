"""Kinds of files beside CSV and Parquet, one reader each; and how the text of a file is written."""
