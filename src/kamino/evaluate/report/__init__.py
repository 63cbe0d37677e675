"""The report: its statistics as charts and sentences on one page."""
