"""What the tax table knows of each state: size, incomes, tax rates and exemptions.

The figures are rounded and in part invented; they are there to give the table a natural skew.
"""

from __future__ import annotations

from typing import NamedTuple


class State(NamedTuple):
    """One state. `STATES` is in the order of zip codes, from 0 in the north-east to 9 in the west."""

    name: str
    population: float
    """Millions of people."""
    income: int
    """Median salary of an unmarried earner, in thousands."""
    low_rate: float
    """Tax rate, in percent, of the smallest salaries."""
    top_rate: float
    """Tax rate, in percent, that large salaries approach."""
    single_exemp: int
    married_exemp: int
    child_exemp: int


STATES: tuple[State, ...] = (
    State("MA", 7.0, 46, 5.0, 5.0, 4400, 8800, 1000),
    State("RI", 1.1, 39, 3.75, 5.99, 4700, 9400, 4700),
    State("NH", 1.4, 43, 0.0, 0.0, 0, 0, 0),
    State("ME", 1.4, 35, 5.8, 7.15, 4700, 9400, 300),
    State("VT", 0.6, 37, 3.35, 8.75, 4850, 9700, 4850),
    State("CT", 3.6, 46, 2.0, 6.99, 15000, 24000, 0),
    State("NJ", 9.3, 47, 1.4, 10.75, 1000, 2000, 1500),
    State("NY", 19.7, 42, 4.0, 10.9, 8000, 16050, 1000),
    State("PA", 13.0, 38, 3.07, 3.07, 0, 0, 0),
    State("DE", 1.0, 38, 2.2, 6.6, 3250, 6500, 110),
    State("DC", 0.7, 55, 4.0, 10.75, 13850, 27700, 0),
    State("VA", 8.7, 43, 2.0, 5.75, 930, 1860, 930),
    State("MD", 6.2, 46, 2.0, 5.75, 3200, 6400, 3200),
    State("WV", 1.8, 31, 2.36, 5.12, 2000, 4000, 2000),
    State("NC", 10.7, 34, 4.75, 4.75, 12750, 25500, 0),
    State("SC", 5.3, 33, 0.0, 6.5, 13850, 27700, 4610),
    State("GA", 10.9, 36, 1.0, 5.75, 5400, 7100, 3000),
    State("FL", 22.2, 34, 0.0, 0.0, 0, 0, 0),
    State("AL", 5.1, 31, 2.0, 5.0, 1500, 3000, 1000),
    State("TN", 7.0, 33, 0.0, 0.0, 0, 0, 0),
    State("MS", 2.9, 28, 0.0, 5.0, 6000, 12000, 1500),
    State("KY", 4.5, 32, 4.5, 4.5, 2980, 5960, 0),
    State("OH", 11.8, 35, 0.0, 3.99, 2400, 4800, 2400),
    State("IN", 6.8, 34, 3.15, 3.15, 1000, 2000, 2500),
    State("MI", 10.0, 36, 4.25, 4.25, 5000, 10000, 5000),
    State("IA", 3.2, 36, 4.4, 6.0, 40, 80, 40),
    State("WI", 5.9, 37, 3.54, 7.65, 700, 1400, 700),
    State("MN", 5.7, 42, 5.35, 9.85, 13850, 27700, 4800),
    State("SD", 0.9, 34, 0.0, 0.0, 0, 0, 0),
    State("ND", 0.8, 38, 1.1, 2.9, 13850, 27700, 0),
    State("MT", 1.1, 34, 1.0, 6.75, 2960, 5920, 2960),
    State("IL", 12.6, 39, 4.95, 4.95, 2425, 4850, 2425),
    State("MO", 6.2, 34, 2.0, 4.95, 13850, 27700, 0),
    State("KS", 2.9, 36, 3.1, 5.7, 2250, 4500, 2250),
    State("NE", 2.0, 36, 2.46, 6.64, 157, 314, 157),
    State("LA", 4.6, 31, 1.85, 4.25, 4500, 9000, 1000),
    State("AR", 3.0, 30, 2.0, 4.7, 29, 58, 29),
    State("OK", 4.0, 32, 0.25, 4.75, 1000, 2000, 1000),
    State("TX", 30.0, 36, 0.0, 0.0, 0, 0, 0),
    State("CO", 5.8, 43, 4.4, 4.4, 13850, 27700, 400),
    State("WY", 0.6, 37, 0.0, 0.0, 0, 0, 0),
    State("ID", 1.9, 33, 5.8, 5.8, 13850, 27700, 205),
    State("UT", 3.4, 38, 4.65, 4.65, 1750, 3500, 1750),
    State("AZ", 7.4, 36, 2.5, 2.5, 13850, 27700, 100),
    State("NM", 2.1, 31, 1.7, 5.9, 2500, 5000, 4000),
    State("NV", 3.2, 35, 0.0, 0.0, 0, 0, 0),
    State("CA", 39.0, 41, 1.0, 13.3, 140, 280, 433),
    State("HI", 1.4, 38, 1.4, 11.0, 1144, 2288, 1144),
    State("OR", 4.2, 38, 4.75, 9.9, 236, 472, 236),
    State("WA", 7.8, 44, 0.0, 0.0, 0, 0, 0),
    State("AK", 0.7, 43, 0.0, 0.0, 0, 0, 0),
)
