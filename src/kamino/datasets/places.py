"""Invent the zip codes, cities and area codes of the tax table, so that each belongs to one state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.datasets.states import STATES

NUM_AREA_CODES = 320
MAX_ZIPS = 18_000
_FIRST_ZIP, _LAST_ZIP = 1_001, 99_950
_FIRST_AREA_CODE, _LAST_AREA_CODE = 201, 989

_FIRST_PARTS = (
    "Ash Bay Bear Birch Bridge Brook Cedar Center Clay Clear Cold Cotton Crystal Deer Eagle East Elm Fair "
    "Falcon Farm Forest Fox Frank George Glen Golden Grand Green Hamil Harris Hart Hazel Hill Jackson Jeffer "
    "King Lake Lancas Liberty Lincoln Lynn Madi Maple Marsh Mill New North Oak Orange Palm Park Pine Plain "
    "Pleasant Quincy Red Ridge River Rock Rose Salem Sand Silver South Spring Stone Summer Sun Thorn Union "
    "Walnut Water West White Wild Willow Wind Winter Wood"
)
_LAST_PARTS = (
    "boro bridge brook burg bury by chester creek dale del fall field ford gate grove ham haven hurst land "
    "ley mont mouth point port ridge shire side son stead ston ton town vale view ville ward water well wick "
    "wood worth"
)

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where people may live. Arrays of one entry a zip code; zip codes of one state stand together."""

    zip_names: pa.Array
    zip_state: Codes
    """Index of the zip's state in `STATES`."""
    zip_city: Codes
    """Index of the zip's city in `city_names`."""
    zip_area_code: Codes
    """Index in `area_code_names` of the area code most people of the zip have."""
    zip_weight: npt.NDArray[np.float64]
    """Probability that a person lives in the zip."""
    city_names: pa.Array
    area_code_names: pa.Array
    area_code_state: Codes


def make_places(num_rows: int, rng: np.random.Generator) -> Places:
    """Invent places for `num_rows` people, with about 18 √num_rows zip codes and at most 18,000."""
    population = np.array([state.population for state in STATES])
    num_zips = int(min(MAX_ZIPS, max(2 * len(STATES), 18 * np.sqrt(num_rows))))
    zips_of_state = _split(num_zips, population)
    zip_state = np.repeat(np.arange(len(STATES)), zips_of_state)
    area_codes_of_state = _split(NUM_AREA_CODES, population)
    area_code_state = np.repeat(np.arange(len(STATES)), area_codes_of_state)
    area_codes = rng.permutation(np.arange(_FIRST_AREA_CODE, _LAST_AREA_CODE + 1))[:NUM_AREA_CODES]
    zip_city, city_names = _cities(zips_of_state, rng)
    return Places(
        zip_names=pa.array([f"{number:05d}" for number in _zip_numbers(zips_of_state, population, rng)]),
        zip_state=zip_state,
        zip_city=zip_city,
        zip_area_code=_area_code_of_city(zip_city, zip_state, area_codes_of_state, rng),
        zip_weight=_zip_weights(zip_state, population, rng),
        city_names=pa.array(city_names),
        area_code_names=pa.array([str(code) for code in area_codes]),
        area_code_state=area_code_state,
    )


def _split(total: int, weight: npt.NDArray[np.float64]) -> Codes:
    """Split `total` in proportion to `weight`, with at least one for each and the exact sum."""
    spare = total - len(weight)
    edges = np.round(np.cumsum(weight) / weight.sum() * spare).astype(np.int64)
    return np.asarray(np.diff(edges, prepend=0) + 1)


def _zip_numbers(zips_of_state: Codes, population: npt.NDArray[np.float64], rng: np.random.Generator) -> list[int]:
    """Give each state a range of numbers in proportion to its size, and draw its zip codes from it."""
    widths = _split(_LAST_ZIP - _FIRST_ZIP + 1, population)
    starts = _FIRST_ZIP + np.cumsum(widths) - widths
    numbers: list[int] = []
    for count, start, width in zip(zips_of_state, starts, widths, strict=True):
        numbers += np.sort(start + rng.choice(width, size=count, replace=False)).tolist()
    return numbers


def _cities(zips_of_state: Codes, rng: np.random.Generator) -> tuple[Codes, list[str]]:
    """Group the zip codes of each state into cities, few of them with many zip codes, and name the cities.

    Names differ within a state; two states may well have a city of the same name, as in life.
    """
    names = np.array([first + last for first in _FIRST_PARTS.split() for last in _LAST_PARTS.split()])
    city_names: list[str] = []
    parts = []
    for count in zips_of_state:
        num_cities = max(1, round(0.55 * count))
        share = 1 / np.arange(1, num_cities + 1) ** 0.8
        extra = rng.choice(num_cities, size=count - num_cities, p=share / share.sum())
        parts.append(len(city_names) + np.sort(np.concatenate([np.arange(num_cities), extra])))
        city_names += rng.choice(names, size=num_cities, replace=False).tolist()
    return np.concatenate(parts), city_names


def _area_code_of_city(
    zip_city: Codes, zip_state: Codes, area_codes_of_state: Codes, rng: np.random.Generator
) -> Codes:
    """Give all zip codes of a city one area code of their state."""
    starts = np.cumsum(area_codes_of_state) - area_codes_of_state
    city_draw = rng.random(int(zip_city.max()) + 1)
    return np.asarray(starts[zip_state] + (city_draw[zip_city] * area_codes_of_state[zip_state]).astype(np.int64))


def _zip_weights(
    zip_state: Codes, population: npt.NDArray[np.float64], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Give zip codes skewed sizes that add up to the share of their state."""
    size = rng.lognormal(sigma=0.9, size=len(zip_state))
    of_state = np.bincount(zip_state, weights=size, minlength=len(STATES))
    weight = size / of_state[zip_state] * population[zip_state]
    return np.asarray(weight / weight.sum())
