"""What fitting leaves behind: a model and the facts of its making. Public facts only; it may be saved and shared."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from kamino.constraints import Constraints
from kamino.errors import ModelError
from kamino.io.bundle import Bundle
from kamino.model import SavedModel, load_model
from kamino.pipeline.references import References, from_json, to_json
from kamino.pipeline.settings import Settings
from kamino.sampling.weights import FoundWeights
from kamino.schema import Codec, Schema

FORMAT = "kamino-model-1"
HELD = "held_by_keys.dc"
_PARTS = ("manifest.json", "schema.yaml", "constraints.dc", "references.json", "soft.json", "ledger.json", "model.json")


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A fitted model with its schema, its constraints and the ledger of what it cost. Every field may be published.

    Guarantees:
        Saving and loading keep everything.  [test_saved_model_samples_the_same]
        A saved file holds no row of the private table.  [test_model_file_holds_no_private_value]
    """

    schema: Schema
    constraints: Constraints
    model: SavedModel
    ledger: dict[str, Any]
    references: References = field(default_factory=dict, repr=False)
    soft: FoundWeights = field(default_factory=FoundWeights)
    settings: Settings = field(default_factory=Settings)
    held: Constraints = field(default_factory=Constraints)
    """What made-up keys satisfy by themselves, so that no step has to: never drawn for, but promised all the same."""

    @property
    def promised(self) -> Constraints:
        """All constraints that a table drawn from the model is checked for."""
        return Constraints((*self.constraints, *self.held))

    @property
    def codec(self) -> Codec:
        """Codes to values and back."""
        return Codec(self.schema)

    @property
    def num_rows(self) -> int:
        """The noisy number of rows of the private table, at least 1."""
        return max(1, round(self.model.num_rows))

    def to_bundle(self) -> Bundle:
        """The model as readable texts and plain arrays."""
        meta, arrays = self.model.to_arrays()
        texts = {
            "manifest.json": _dump({"format": FORMAT, "parts": list(_PARTS), "settings": self.settings.to_json()}),
            "schema.yaml": self.schema.to_yaml(),
            "constraints.dc": f"{self.constraints}\n",
            HELD: f"{self.held}\n",
            "references.json": _dump(to_json(self.references)),
            "soft.json": _dump(self.soft.to_json()),
            "ledger.json": _dump(self.ledger),
            "model.json": _dump(meta),
        }
        return Bundle(texts=texts, arrays=arrays)

    @staticmethod
    def from_bundle(bundle: Bundle, *, source: str = "model") -> Fitted:
        """Read what `to_bundle` wrote; anything else raises a `ModelError`."""
        missing = [part for part in _PARTS if part not in bundle.texts]
        if missing:
            raise ModelError(f"{source}: found no {', '.join(missing)}; expected a model file made by Kamino")
        manifest = json.loads(bundle.texts["manifest.json"])
        found = manifest.get("format")
        if found != FORMAT:
            raise ModelError(f"{source}: found format {found!r}, expected {FORMAT!r}; fit the model again")
        try:
            schema = Schema.from_yaml(bundle.texts["schema.yaml"], source=f"{source}/schema.yaml")
            constraints = Constraints.parse(bundle.texts["constraints.dc"], source=f"{source}/constraints.dc")
            return Fitted(
                schema=schema,
                soft=FoundWeights.from_json(json.loads(bundle.texts["soft.json"]), constraints),
                references=from_json(json.loads(bundle.texts["references.json"]), schema),
                constraints=constraints,
                # Files of earlier versions have no such part.
                held=Constraints.parse(bundle.texts.get(HELD, ""), source=f"{source}/{HELD}"),
                model=load_model(json.loads(bundle.texts["model.json"]), dict(bundle.arrays)),
                ledger=json.loads(bundle.texts["ledger.json"]),
                settings=Settings.from_json(manifest.get("settings", {})),
            )
        except (KeyError, TypeError, json.JSONDecodeError) as problem:
            raise ModelError(f"{source}: the model file is damaged ({type(problem).__name__}); fit it again") from None


def _dump(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
