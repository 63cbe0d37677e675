"""Models trained on synthetic rows."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

from kamino.errors import InputError
from kamino.evaluate.learn.features import encode_pair
from kamino.evaluate.learn.learning import (
    Learning,
    Score,
    attributes_of,
    classifiers,
    models_of,
    split_rows,
    train_models,
)


def linked(rows: int, seed: int) -> pa.Table:
    """`label` follows from `n`; `kind` says nothing."""
    rng = np.random.default_rng(seed)
    n = rng.normal(size=rows)
    return pa.table({"n": n, "label": np.where(n > 0, "yes", "no"), "kind": rng.choice(["a", "b", "c"], rows)})


def test_a_table_is_as_good_as_itself() -> None:
    pytest.importorskip("sklearn")
    table = linked(240, 1)
    found = train_models(table, table, workers=2)
    assert len(list(models_of(found))) == 9
    assert list(attributes_of(found)) == ["n", "label", "kind"]
    assert (found.train_rows, found.test_rows) == (168, 72)
    for side in ("true", "synthetic"):
        assert found.mean("accuracy", side, attribute="label") > 0.9
        assert found.mean("f1", side, attribute="n") > 0.9
    assert found.mean("accuracy", "true", attribute="kind") < 0.8


def test_a_table_without_the_link_teaches_nothing() -> None:
    pytest.importorskip("sklearn")
    true, other = linked(200, 1), linked(200, 2)
    broken = other.set_column(0, "n", [other.column("n").combine_chunks().take(pa.array(np.arange(200)[::-1]))])
    found = train_models(true, broken, max_rows=100)
    assert found.train_rows == 100
    assert found.mean("accuracy", "synthetic", attribute="label") < 0.75
    assert found.mean("accuracy", "true", attribute="label") > 0.9


def test_one_synthetic_class_predicts_that_class() -> None:
    pytest.importorskip("sklearn")
    true = linked(100, 1)
    constant = true.set_column(1, "label", [["no"] * 100])
    found = train_models(true, constant)
    scores = [s for s in found.scores if s.trained_on == "synthetic" and s.attribute == "label"]
    assert len(scores) == 9
    assert len({(s.accuracy, s.f1) for s in scores}) == 1
    assert 0.2 < scores[0].accuracy < 0.8


@pytest.mark.parametrize("rows", [8, 100])
def test_rare_labels_are_trained_on(rows: int) -> None:
    """One training row has another label than all the others; eight rows are too few to set some aside."""
    pytest.importorskip("sklearn")
    true = linked(100, 1)
    train = split_rows(100, rows, max_rows=None).train["synthetic"]
    labels = np.full(rows, "no")
    labels[train[0]] = "yes"
    found = train_models(true, linked(rows, 2).set_column(1, "label", [labels]), sides=("synthetic",))
    scores = [s for s in found.scores if s.attribute == "label"]
    assert len(scores) == 9
    assert all(s.accuracy > 0.2 for s in scores)


def test_train_and_test_rows_are_apart() -> None:
    split = split_rows(100, 50, max_rows=None)
    assert (len(split.train["true"]), len(split.train["synthetic"]), len(split.test)) == (70, 35, 30)
    assert not set(split.train["true"]) & set(split.test)
    smaller = split_rows(100, 50, max_rows=10)
    assert len(smaller.train["true"]) == len(smaller.train["synthetic"]) == 10
    assert smaller.test.tolist() == split.test.tolist()


def test_labels() -> None:
    true = pa.table(
        {
            "n": [1, 2, 3, 4],
            "top": [1, 5, 5, 5],
            "two": ["x", "x", "x", "y"],
            "many": ["a", "a", "b", "c"],
            "one": ["k"] * 4,
            "null": pa.array([None] * 4, pa.int64()),
        }
    )
    rows, other = encode_pair(true, true.slice(2, 2))
    assert rows.labels["n"].tolist() == [False, False, True, True]
    # nothing is above the median, so the label is whether it is reached
    assert rows.labels["top"].tolist() == [False, True, True, True]
    assert rows.labels["two"].tolist() == [False, False, False, True]
    assert rows.labels["many"].tolist() == [True, True, False, False]
    assert set(rows.labels) == {"n", "top", "two", "many"}
    assert other.labels["two"].tolist() == [False, True]


def test_features_leave_the_label_out_and_take_new_values() -> None:
    true = pa.table({"n": [1.0, 3.0, None], "c": ["a", "b", "a"]})
    rows, other = encode_pair(true, pa.table({"n": [1e300, None], "c": ["z", None]}))
    assert rows.features("n", wide=False).shape == (3, 1)
    assert rows.features("c", wide=True).tolist() == [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert other.features("n", wide=True).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert np.isfinite(other.features("c", wide=True)).all()


def test_means() -> None:
    scores = tuple(
        Score(attribute=a, model=m, trained_on=t, accuracy=v, f1=v / 2)
        for a, m, t, v in (("x", "p", "true", 1.0), ("x", "q", "true", 0.5), ("y", "p", "synthetic", 0.2))
    )
    learning = Learning(scores=scores, train_rows=1, test_rows=1)
    assert learning.mean("accuracy", "true") == 0.75
    assert learning.mean("f1", "true", model="q") == 0.25
    assert learning.mean("accuracy", "true", attribute="y") == 0.0


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InputError, match=r"pip install 'kamino-synth\[ml\]'"):
        classifiers()
