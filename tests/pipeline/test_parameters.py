"""The parameters of a synthesizer: typed, told when wrong, and handled as scikit-learn handles them."""

from __future__ import annotations

import copy
import inspect
import io
import math
import pickle
import re
import subprocess
import sys
from dataclasses import fields
from enum import EnumType
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import sklearn.base
from tests.forked import forks
from tests.pipeline.test_privacy_of_synth import RULES, SCHEMA, private_table

import kamino
from kamino import Constraints, InputError, KaminoError, Schema, Settings, Synthesizer, pipeline

ROOT = Path(__file__).resolve().parents[2]


def test_every_setting_is_a_keyword() -> None:
    keywords = inspect.signature(Synthesizer).parameters
    # What fixes the draws of a run that goes on is not for users to give.
    given = [each for each in fields(Settings) if each.name != "draw_seed"]
    explained = " ".join((inspect.getdoc(Synthesizer) or "").split())
    assert set(keywords) == {"schema", "constraints", "preset", "ledger", "dataset"} | {each.name for each in given}
    for each in given:
        assert keywords[each.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert keywords[each.name].default in (None, each.default)
        assert f" {each.name}: {each.metadata['text']} " in explained, f"{each.name} is explained in other words"
    assert Synthesizer().settings == Settings()


def test_what_keywords_take_is_exported() -> None:
    """Every enumeration in the signature."""
    hints = " ".join(str(each.annotation) for each in inspect.signature(Synthesizer).parameters.values())
    named = {name: getattr(pipeline.settings, name, None) for name in re.findall(r"[A-Z]\w+", hints)}
    enums = {name for name, each in named.items() if isinstance(each, EnumType)}
    assert {"Backend", "Engine", "Neighbours", "Sampling"} <= enums <= set(kamino.__all__)


def test_mypy_refuses_a_wrong_keyword(tmp_path: Path) -> None:
    code = (
        "import kamino\n"
        "kamino.Synthesizer(epsilon=1.0, neighbours='replace', seed=3)\n"
        "kamino.Synthesizer(epsilom=1.0)\n"
        "kamino.Synthesizer(epsilon='1')\n"
        "kamino.Synthesizer(constraints=[7])\n"
    )
    (tmp_path / "snippet.py").write_text(code, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        "pyproject.toml",
        "--strict",
        str(tmp_path / "snippet.py"),
    ]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert [line.split(":")[1] for line in told.splitlines() if "snippet.py:" in line and ": error" in line] == [
        "3",
        "4",
        "5",
    ], told
    assert 'Unexpected keyword argument "epsilom"' in told


def test_an_unknown_keyword_is_an_error_of_python() -> None:
    with pytest.raises(TypeError, match="epsilom"):
        Synthesizer(epsilom=1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"epsilon": "1"}, "found epsilon '1' of type str; expected a number"),
        ({"epsilon": True}, "found epsilon True of type bool; expected a number"),
        ({"sweeps": 1.5}, "found sweeps 1.5 of type float; expected a whole number"),
        ({"seed": "x"}, "found seed 'x' of type str; expected a whole number"),
        ({"trust_domain": "yes"}, "found trust_domain 'yes' of type str; expected True or False"),
        ({"unit": 3, "max_rows": 1}, "found unit 3 of type int; expected text"),
        ({"schema": 42}, "found a schema of type int; expected a Schema, a mapping, text, or a Path to a file"),
        ({"schema": ["a"]}, "found a schema of type list; expected a Schema, a mapping, text, or a Path"),
        ({"constraints": [7]}, "expected Constraints, a list of texts, text, or a Path"),
        ({"constraints": 3}, "found a constraint of type int"),
        ({"epsilon": None}, "found epsilon None; leave it out to have 1.0"),
        ({"value_lists": None}, "found value_lists None; leave it out to have ()"),
        ({"value_lists": "state"}, "found value_lists 'state'; expected pairs of texts"),
        ({"value_lists": [("state",)]}, "expected pairs of texts, such as [('state', 'us-states')]"),
        ({"ledger": 3}, "found the path of a ledger of type int; expected text or a Path"),
        ({"seed": -1}, "found seed -1; expected 0 or more"),
        ({"unit": "a", "max_rows": 0}, "found max_rows 0; expected 1 or more"),
        ({"backend": 3}, "found backend 3; expected one of marginal, neural"),
    ],
)
def test_wrong_types_are_told(given: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        Synthesizer(**given)
    assert text in str(caught.value)


def test_no_constraints_are_none_or_empty_text() -> None:
    for none in (None, "", Constraints()):
        made = Synthesizer(SCHEMA, constraints=none, seed=1)
        assert made.constraints == Constraints()
        assert sklearn.base.clone(made).constraints == Constraints()
    assert repr(Synthesizer(constraints=None)) == repr(Synthesizer())


def test_lists_of_values_are_pairs_or_a_mapping() -> None:
    expected = (("state", "us-states"),)
    assert Synthesizer(value_lists=[("state", "us-states")]).settings.value_lists == expected
    assert Synthesizer(value_lists={"state": "us-states"}).settings.value_lists == expected  # type: ignore[arg-type]


def test_what_is_no_path_is_told() -> None:
    made = Synthesizer(SCHEMA, RULES, seed=1).fit(private_table())
    with pytest.raises(InputError, match="path of a table to write of type int; expected text or a Path"):
        made.write(3, 10)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="path of a model of type NoneType"):
        made.save(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="path of a model of type int"):
        Synthesizer.load(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="found seed -3; expected 0 or more"):
        made.sample(3, seed=-3)


def test_numbers_of_numpy_become_plain() -> None:
    found = Synthesizer(epsilon=np.float32(0.5), sweeps=np.int64(3)).settings  # type: ignore[arg-type]
    assert (type(found.epsilon), type(found.sweeps), found.sweeps) == (float, int, 3)


def test_a_path_given_as_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text(SCHEMA.to_yaml(), encoding="utf-8")
    (tmp_path / "rules.dc").write_text("city -> zone\n", encoding="utf-8")
    by_path = Synthesizer(tmp_path / "schema.yaml", tmp_path / "rules.dc")
    by_text = Synthesizer(SCHEMA.to_yaml(), "city -> zone")
    assert by_path.schema == by_text.schema == SCHEMA
    assert by_path.constraints == by_text.constraints
    with pytest.raises(InputError, match=r"For a file say Path\('schema.yaml'\)"):
        Synthesizer("schema.yaml")
    with pytest.raises(InputError, match=r"For a file say Path\('rules.dc'\)"):
        Synthesizer(SCHEMA, "rules.dc")
    with pytest.raises(InputError, match="give it as str, not as a Path"):
        Synthesizer(SCHEMA, Path("city -> zone"))
    with pytest.raises(InputError, match=r"nowhere.dc: there is no such constraint file; check the path$"):
        Synthesizer(SCHEMA, tmp_path / "nowhere.dc")


def test_sklearn_clones_a_synthesizer() -> None:
    made = Synthesizer(SCHEMA, RULES, epsilon=0.5, sampling="row-by-row", seed=1).fit(private_table())
    again = sklearn.base.clone(made)
    assert again.get_params() == made.get_params()
    assert (again.settings, again.schema, again.constraints) == (made.settings, made.schema, made.constraints)
    with pytest.raises(KaminoError, match="no fitted model"):
        again.sample(3)
    assert again.fit(private_table()).sample(20).equals(made.sample(20))


def test_parameters_are_set_by_name() -> None:
    made = Synthesizer(SCHEMA, RULES, seed=1).fit(private_table())
    drawn = made.sample(20)
    assert made.set_params(epsilon=2.0, constraints="city -> zone") is made
    assert made.get_params()["epsilon"] == made.settings.epsilon == 2.0
    assert made.constraints == Constraints.parse("city -> zone")
    assert made.sample(20).equals(drawn), "what was fitted stays"
    with pytest.raises(InputError, match=r"unknown parameter 'epsilom'\. Did you mean 'epsilon'"):
        made.set_params(epsilom=1)
    with pytest.raises(KaminoError):
        made.set_params(epsilon=-1.0, constraints="")
    assert made.get_params()["epsilon"] == made.settings.epsilon == 2.0
    assert made.get_params()["constraints"] == "city -> zone"


def test_the_text_shows_the_parameters() -> None:
    assert repr(Synthesizer()) == "Synthesizer(epsilon=1.0, delta=1e-06)"
    made = Synthesizer(SCHEMA, "city -> zone", preset="paper", epsilon=math.inf, trust_domain=True)
    assert repr(made) == (
        f"Synthesizer(schema=<Schema of {len(SCHEMA)} attributes>, constraints='city -> zone', preset='paper', "
        "epsilon=inf, delta=1e-06, trust_domain=True)"
    )
    assert repr(Synthesizer(SCHEMA, seed=1).fit(private_table())).startswith("fitted Synthesizer(")
    assert len(repr(Synthesizer(constraints="city -> zone\n" * 1000))) < 300


@pytest.mark.parametrize("way", ["pickle", "joblib", "deepcopy"])
def test_a_copy_draws_the_same(way: str, tmp_path: Path) -> None:
    made = Synthesizer(SCHEMA, RULES, seed=1).fit(private_table())
    again = _copied(made, way)
    assert again.get_params() == made.get_params()
    assert again.sample(50, seed=4).equals(made.sample(50, seed=4))
    assert again.ledger == made.ledger
    assert repr(_copied(Synthesizer(SCHEMA, RULES, epsilon=3.0), way)) == repr(Synthesizer(SCHEMA, RULES, epsilon=3.0))


def _copied(made: Synthesizer, way: str) -> Synthesizer:
    if way == "deepcopy":
        return copy.deepcopy(made)
    if way == "pickle":
        return pickle.loads(pickle.dumps(made))  # type: ignore[no-any-return]
    buffer = io.BytesIO()
    joblib.dump(made, buffer)
    return joblib.load(io.BytesIO(buffer.getvalue()))  # type: ignore[no-any-return]


def test_a_pickle_is_read_in_another_process(tmp_path: Path) -> None:
    made = Synthesizer(SCHEMA, RULES, seed=1).fit(private_table())
    (tmp_path / "made.pickle").write_bytes(pickle.dumps(made))
    code = (
        "import pickle, sys; made = pickle.load(open(sys.argv[1], 'rb'));"
        "print(made.sample(5, seed=4).to_pylist() == eval(sys.argv[2], {'datetime': __import__('datetime')}))"
    )
    rows = repr(made.sample(5, seed=4).to_pylist())
    told = forks().run(code, tmp_path / "made.pickle", rows, folder=tmp_path)
    assert (told.stdout, told.stderr) == ("True\n", "")


def test_a_pickle_of_files_does_not_need_them(tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text(SCHEMA.to_yaml(), encoding="utf-8")
    saved = pickle.dumps(Synthesizer(tmp_path / "schema.yaml"))
    (tmp_path / "schema.yaml").unlink()
    assert pickle.loads(saved).schema == SCHEMA


def test_a_pickle_holds_no_private_cell() -> None:
    made = Synthesizer(SCHEMA, RULES, epsilon=math.inf).fit(private_table())
    assert b"secret" not in pickle.dumps(made)
    # The pickle is the saved model and the parameters: it cannot hold what a model file does not.
    state = made.__getstate__()
    assert set(state) == {
        *("_given", "settings", "schema", "constraints", "_folder", "_fitted"),
        *("_ledger", "_job", "_catalogue", "_random"),
    }
    assert state["_job"] is None
    assert vars(state["_random"]) == {"seed": None, "draw_seed": None, "num_draws": 0}
    assert state["_catalogue"] is None
    assert dict(state["_fitted"].texts) == dict(made.fitted.to_bundle().texts)
    assert state["_given"] == made.get_params()


def test_schemas_and_constraints_are_copied() -> None:
    for each in (SCHEMA, RULES, Constraints.parse("zip -> city\nsoft: key (ssn)")):
        assert copy.deepcopy(each) == each == pickle.loads(pickle.dumps(each))
    assert isinstance(copy.deepcopy(SCHEMA), Schema)
