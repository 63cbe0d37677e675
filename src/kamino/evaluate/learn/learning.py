"""Models trained on the synthetic table and judged on the true one: the paper's second metric.

For every column a binary label, predicted from all other columns by nine kinds of classifier. Each is trained on 70% of
the synthetic rows and tested on 30% of the true rows; trained on the other 70% of the true rows it gives the ceiling.
Needs scikit-learn and XGBoost (`pip install 'kamino-synth[ml]'`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kamino.errors import InputError
from kamino.evaluate.learn.features import Labels, Matrix, Rows, encode_pair
from kamino.evaluate.measure.columns import align

TRAIN_SHARE = 0.7
# With fewer rows, or fewer of one label, none can be set aside to tell when to stop training.
_FEW_ROWS, _FEW_OF_ONE = 40, 2
# Training rows by default: two and a half minutes for a table of 15 columns on two cores.
MAX_ROWS = 5_000
Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Score:
    """How well one classifier predicts one column's label on the true test rows."""

    attribute: str
    model: str
    trained_on: str
    accuracy: float
    f1: float


@dataclass(frozen=True, kw_only=True)
class Learning:
    """All scores, and their means."""

    scores: tuple[Score, ...]
    train_rows: int
    test_rows: int

    def mean(self, measure: str, trained_on: str, *, attribute: str | None = None, model: str | None = None) -> float:
        """The mean accuracy or F1 over models and columns, or of one of them; 0 where there are none."""
        found = [
            getattr(s, measure)
            for s in self.scores
            if s.trained_on == trained_on and attribute in (None, s.attribute) and model in (None, s.model)
        ]
        return float(np.mean(found)) if found else 0.0


def train_models(
    true: pa.Table,
    synthetic: pa.Table,
    *,
    max_rows: int | None = MAX_ROWS,
    workers: int | None = None,
    sides: Sequence[str] = ("true", "synthetic"),
    progress: Callable[[list[Task]], Iterable[Task]] = iter,
) -> Learning:
    """Train and test all classifiers for all columns; `max_rows` limits the rows that each is trained on.

    `sides` are the tables to train on: the ceiling, from the true one, is the same for every synthetic table.

    Guarantees:
        Tables with few rows, or a label that one row has, are trained on as well.  [test_rare_labels_are_trained_on]
        A table trained against itself reaches the ceiling.  [test_a_table_is_as_good_as_itself]
        Tests on true rows that the ceiling was not trained on.  [test_train_and_test_rows_are_apart]
    """
    made = classifiers()
    rows = encode_pair(true, align(true, synthetic))
    split = split_rows(true.num_rows, synthetic.num_rows, max_rows=max_rows)
    tasks = [Task(a, m, side) for a in rows[0].labels for m in made for side in sides]
    with warnings.catch_warnings(), ThreadPoolExecutor(workers or min(4, os.cpu_count() or 1)) as pool:
        # a model that has not converged is still a model; the same limits hold for both tables
        warnings.simplefilter("ignore")
        futures = [pool.submit(_score, task, made[task.model], rows, split) for task in tasks]
        scores = tuple(future.result() for _, future in zip(progress(tasks), futures, strict=False))
    return Learning(scores=scores, train_rows=len(split.train["synthetic"]), test_rows=len(split.test))


@dataclass(frozen=True)
class Task:
    """One classifier for one column, trained on one table."""

    attribute: str
    model: str
    trained_on: str


@dataclass(frozen=True, kw_only=True)
class Split:
    """Which rows train, of either table, and which true rows test."""

    train: dict[str, Indices]
    test: Indices


def split_rows(true: int, synthetic: int, *, max_rows: int | None) -> Split:
    """Draw 70% of both tables for training, and the other 30% of the true one for the test."""
    rng = np.random.default_rng(0)
    shuffled, drawn = rng.permutation(true), rng.permutation(synthetic)
    cut = round(TRAIN_SHARE * true)
    keep = max_rows if max_rows is not None else max(true, synthetic)
    train = {"true": shuffled[:cut][:keep], "synthetic": drawn[: round(TRAIN_SHARE * synthetic)][:keep]}
    return Split(train=train, test=shuffled[cut:])


def _score(task: Task, made: Classifier, rows: tuple[Rows, Rows], split: Split) -> Score:
    source = rows[0] if task.trained_on == "true" else rows[1]
    train = split.train[task.trained_on]
    x = source.features(task.attribute, wide=made.wide)[train]
    y = source.labels[task.attribute][train]
    predicted = _predict(made, x, y, rows[0].features(task.attribute, wide=made.wide)[split.test])
    accuracy, f1 = judge(rows[0].labels[task.attribute][split.test], predicted)
    return Score(attribute=task.attribute, model=task.model, trained_on=task.trained_on, accuracy=accuracy, f1=f1)


def _predict(made: Classifier, x: Matrix, y: Labels, test: Matrix) -> Labels:
    """Train and predict; rows that all have one label teach to say that label."""
    if not len(y) or y.all() or not y.any():
        return np.full(len(test), bool(len(y) and y.all()))
    few = len(y) < _FEW_ROWS or min(int(y.sum()), int((~y).sum())) < _FEW_OF_ONE
    model = made.make_for_few() if few and made.make_for_few is not None else made.make()
    return np.asarray(model.fit(x, y).predict(test), dtype=np.bool_)


def judge(truth: Labels, predicted: Labels) -> tuple[float, float]:
    """Accuracy and F1 of a prediction; F1 is 0 where nothing was found.

    >>> judge(np.array([True, True, False, False]), np.array([True, False, False, False]))
    (0.75, 0.6666666666666666)
    """
    hits = int((truth & predicted).sum())
    named = int(truth.sum() + predicted.sum())
    accuracy = float((truth == predicted).mean()) if len(truth) else 0.0
    return accuracy, 2 * hits / named if named else 0.0


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """A way to make a fresh model, and whether it wants one feature for each value of a category.

    `make_for_few` is for rows too few, or a label too rare, to set some aside while training.
    """

    make: Callable[[], Any]
    make_for_few: Callable[[], Any] | None = None
    wide: bool = False


def classifiers() -> dict[str, Classifier]:
    """The paper's nine kinds, with default parameters and a fixed random state; the network stops early."""
    try:
        from sklearn import ensemble, linear_model, naive_bayes, neural_network, tree
        from xgboost import XGBClassifier
    except ImportError as problem:
        raise InputError(
            f"found no {problem.name}, which training models needs; install it with: pip install 'kamino-synth[ml]'"
        ) from None
    return {
        "logistic regression": Classifier(make=lambda: linear_model.LogisticRegression(max_iter=200), wide=True),
        "AdaBoost": Classifier(make=lambda: ensemble.AdaBoostClassifier(random_state=0)),
        "gradient boosting": Classifier(make=lambda: ensemble.GradientBoostingClassifier(random_state=0)),
        "XGBoost": Classifier(make=lambda: XGBClassifier(random_state=0, n_jobs=1, verbosity=0)),
        "random forest": Classifier(make=lambda: ensemble.RandomForestClassifier(random_state=0)),
        "Bernoulli NB": Classifier(make=naive_bayes.BernoulliNB, wide=True),
        "decision tree": Classifier(make=lambda: tree.DecisionTreeClassifier(random_state=0)),
        "bagging": Classifier(make=lambda: ensemble.BaggingClassifier(random_state=0)),
        "neural network": Classifier(
            make=lambda: neural_network.MLPClassifier(random_state=0, early_stopping=True),
            make_for_few=lambda: neural_network.MLPClassifier(random_state=0, max_iter=50),
            wide=True,
        ),
    }


def attributes_of(learning: Learning) -> Iterator[str]:
    """The columns that had a label, in order."""
    yield from dict.fromkeys(score.attribute for score in learning.scores)


def models_of(learning: Learning) -> Iterator[str]:
    """The classifiers, in order."""
    yield from dict.fromkeys(score.model for score in learning.scores)
