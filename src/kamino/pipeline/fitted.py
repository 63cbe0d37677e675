"""What fitting leaves behind: a model and the facts of its making. Public facts only; it may be saved and shared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kamino.constraints import Constraints
from kamino.engine.discovery import FoundDomains
from kamino.errors import ModelError
from kamino.io.bundle import Bundle
from kamino.io.frame_types import FrameKind
from kamino.layout.recoding import joined
from kamino.layout.table_layout import Layout
from kamino.model import MarginalModel, SavedModel, load_model
from kamino.model.saved import Fields, shown
from kamino.pipeline.model_file import (
    check_fits,
    check_sizes,
    constraints_of,
    found_of,
    frame_of,
    groups_of,
    held_of,
    layout_of,
    ledger_of,
    read_json,
    references_of,
    refusing_damage,
    settings_of,
    soft_of,
)
from kamino.pipeline.output.taken import found_to_json
from kamino.pipeline.plan.hopeless import most_rows
from kamino.pipeline.plan.references import References, to_json
from kamino.pipeline.settings import Settings
from kamino.sampling import SamplingPlan, build_plan, plan_for_rows
from kamino.sampling.drawn_groups import GroupSizes
from kamino.sampling.plan.reference_maps import reference_of
from kamino.sampling.soft.weights import FoundWeights
from kamino.schema import Codec, Schema
from kamino.schema.coding.differences import Difference

FORMAT = "kamino-model-1"
HELD = "held_by_keys.dc"
LAYOUT = "layout.json"
# Files of earlier versions have this part in the place of a layout.
DIFFERENCES = "differences.json"
FOUND = "found.json"
GROUP_SIZES = "groups.json"
_PARTS = ("manifest.json", "schema.yaml", "constraints.dc", "references.json", "soft.json", "ledger.json", "model.json")


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A fitted model with its schema, its constraints and the ledger of what it cost. Every field may be published.

    Guarantees:
        Saving and loading keep everything.  [test_saved_model_samples_the_same]
        A saved file holds no row of the private table.  [test_model_file_holds_no_private_value]
    """

    layout: Layout
    constraints: Constraints
    model: SavedModel
    ledger: dict[str, Any]
    references: References = field(default_factory=dict, repr=False)
    soft: FoundWeights = field(default_factory=FoundWeights)
    settings: Settings = field(default_factory=Settings)
    held: Constraints = field(default_factory=Constraints)
    """What the layout keeps by itself, so that no step has to: never drawn for, but promised."""
    frame: FrameKind | None = None
    """What kind of frame the table came as, for what is drawn to come back as it."""
    sampling: SamplingPlan | None = None
    """How rows are drawn along the model's sequence; a model file does not hold it, for it follows from the rest."""
    found: FoundDomains | None = None
    """What is known of the domains that were found within the budget, where some were."""
    groups: Mapping[str, GroupSizes] = field(default_factory=dict)
    """How many rows the groups of each id have."""

    @property
    def schema(self) -> Schema:
        """The schema of the tables that people see."""
        return self.layout.schema

    @property
    def differences(self) -> Mapping[str, Difference]:
        """The dates that are modelled by their distance from another."""
        return self.layout.differences

    @cached_property
    def plan(self) -> SamplingPlan:
        """How rows are drawn: as planned in the run, or planned once more from a model file.

        Guarantees:
            A run builds it once.  [test_a_plan_is_built_once_in_a_run]
        """
        planned = self.sampling
        if planned is None:
            planned = build_plan(
                self.codec,
                self.constraints,
                num_rows=0,  # how many rows are possible is asked by `plan_for`, which knows how many are wanted
                references=self.references,
                sequence=self.model.sequence,
            )
        return self.with_learned_maps(planned)

    def with_learned_maps(self, plan: SamplingPlan) -> SamplingPlan:
        """A plan that follows the maps that the model knows of every value, beside those that were given."""
        learned = self.model.maps if isinstance(self.model, MarginalModel) else ()
        return plan.with_maps(reference_of(each, self.codec) for each in learned)

    def plan_for(self, num_rows: int) -> SamplingPlan:
        """How a table of `num_rows` rows is drawn; raises a `SamplingError` where so many are impossible."""
        return plan_for_rows(self.plan, self.codec, self.constraints, num_rows)

    @property
    def promised(self) -> Constraints:
        """All constraints that a table drawn from the model is checked for."""
        return joined(self.constraints, self.held)

    @property
    def codec(self) -> Codec:
        """Codes to values and back."""
        return self.layout.codec

    @property
    def num_rows(self) -> int:
        """How many rows are drawn by default: the noisy number of the private table's, as far as hard keys allow."""
        noisy, most = max(1, round(self.model.num_rows)), most_rows(self.codec, self.constraints)
        return noisy if most is None else max(1, min(noisy, most))

    def to_bundle(self) -> Bundle:
        """The model as readable texts and plain arrays."""
        meta, arrays = self.model.to_arrays()
        texts = {
            "manifest.json": _dump(self._manifest()),
            "schema.yaml": self.schema.to_yaml(),
            "constraints.dc": f"{self.constraints}\n",
            HELD: f"{self.held}\n",
            LAYOUT: _dump(self.layout.to_json()),
            FOUND: _dump(found_to_json(self.found)),
            GROUP_SIZES: _dump({name: vars(each) for name, each in self.groups.items()}),
            "references.json": _dump(to_json(self.references)),
            "soft.json": _dump(self.soft.to_json()),
            "ledger.json": _dump(self.ledger),
            "model.json": _dump(meta),
        }
        check_sizes(texts)
        return Bundle(texts=texts, arrays=arrays)

    def _manifest(self) -> dict[str, Any]:
        made = {"format": FORMAT, "parts": list(_PARTS), "settings": self.settings.to_json()}
        return made if self.frame is None else {**made, "frame": self.frame.to_json()}

    @staticmethod
    def from_bundle(bundle: Bundle, *, source: str = "model") -> Fitted:
        """Read what `to_bundle` wrote.

        Raises:
            ModelError: anything else; the message is one line.

        Guarantees:
            A file that is accepted can be drawn from and certified.  [test_crafted_models_are_refused]
        """
        missing = [part for part in _PARTS if part not in bundle.texts]
        if missing:
            raise ModelError(f"{source}: found no {', '.join(missing)}; expected a model file made by Kamino")
        with refusing_damage(source):
            return _read(bundle)


def _read(bundle: Bundle) -> Fitted:
    """Read all parts of a model file; a part that is not as it must be raises."""
    Fields(bundle.texts, where="file").only(*_PARTS, HELD, LAYOUT, DIFFERENCES, FOUND, GROUP_SIZES)
    check_sizes(bundle.texts)
    parts = {name: read_json(bundle.texts[name], part=name) for name in _PARTS if name.endswith(".json")}
    manifest = Fields(parts["manifest.json"], where="manifest").only("format", "parts", "settings", "frame")
    if manifest.text("format") != FORMAT:
        raise ModelError(f"found format {shown(manifest.text('format'))}, expected {FORMAT!r}")
    settings = settings_of(manifest.any("settings") if "settings" in tuple(manifest) else {})
    schema = Schema.from_yaml(bundle.texts["schema.yaml"], source="schema.yaml")
    constraints = constraints_of(bundle.texts["constraints.dc"], schema, source="constraints.dc")
    # Files of earlier versions have no layout, and may have nothing that it keeps.
    earlier = read_json(bundle.texts.get(DIFFERENCES, "{}"), part=DIFFERENCES)
    written = read_json(bundle.texts[LAYOUT], part=LAYOUT) if LAYOUT in bundle.texts else None
    layout = layout_of(written, schema, constraints, earlier=earlier)
    fitted = Fitted(
        layout=layout,
        constraints=constraints,
        soft=soft_of(parts["soft.json"], constraints),
        references=references_of(parts["references.json"], schema, constraints),
        held=held_of(bundle.texts.get(HELD, ""), layout, source=HELD),
        model=load_model(parts["model.json"], dict(bundle.arrays)),
        ledger=ledger_of(parts["ledger.json"], settings),
        settings=settings,
        # Files of earlier versions, and those of files and queries, have no such part.
        frame=frame_of(manifest, layout.seen) if "frame" in tuple(manifest) else None,
        found=found_of(read_json(bundle.texts.get(FOUND, "{}"), part=FOUND), schema),
        groups=groups_of(read_json(bundle.texts.get(GROUP_SIZES, "{}"), part=GROUP_SIZES), schema),
    )
    check_fits(fitted)
    return fitted


def _dump(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
