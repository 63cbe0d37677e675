"""What a synthetic database may be accompanied by: how private it is, and which rules and keys it keeps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import kamino
from kamino.databases.fitting_levels import FittedDatabase
from kamino.databases.kept_rules import Broken
from kamino.pipeline.output.certificate import canonical
from kamino.pipeline.output.provenance import meanings_of, today, words_of
from kamino.pipeline.output.release_mark import spent_of
from kamino.pipeline.settings import Settings
from kamino.schema.files.database_file import write_database

FORMAT = "kamino-database-certificate-1"


def certificate_of(
    fitted: FittedDatabase, settings: Settings, *, rows: Mapping[str, int], broken: Broken, hashes: Mapping[str, str]
) -> dict[str, Any]:
    """The facts of a run and of the database it made. Public: made from the ledger, the schema and what was written.

    Guarantees:
        What is certified was counted in what was written.  [test_a_database_is_certified]
    """
    ledger = fitted.ledger
    mark = spent_of(ledger, settings, about_units=fitted.num_families).mark
    schema, rules = write_database(fitted.layout.database), list(fitted.layout.rules.texts())
    return {
        "format": FORMAT,
        "kamino": kamino.__version__,
        "date": today(),
        "mark": mark,
        "privacy": {
            "epsilon": ledger["epsilon"],
            "delta": ledger["delta"],
            "neighbours": ledger["neighbours"],
            "unit": ledger["unit"]["text"],
            "spent_epsilon": ledger["spent_epsilon"],
            "meaning": meanings_of(ledger),
            "releases": len(ledger["entries"]),
        },
        "tables": {name: {"rows": count, "sha256": hashes[name]} for name, count in rows.items()},
        "public_tables": list(fitted.layout.database.public),
        "rules": [{"text": text, "violations": count} for text, count in broken.rules.items()],
        "foreign_keys": [{"text": text, "orphans": count} for text, count in broken.orphans.items()],
        "keys": [{"text": text, "doubled": count} for text, count in broken.doubled.items()],
        "notes": list(fitted.notes),
        "words": words_of(ledger, mark=mark),
        "settings": settings.to_json(),
        "schema": schema,
        "ledger": ledger,
        "hashes": {
            "schema": hashlib.sha256(schema.encode()).hexdigest(),
            "rules": hashlib.sha256(("\n".join(rules) + "\n").encode()).hexdigest(),
            "ledger": hashlib.sha256(canonical(ledger)).hexdigest(),
        },
    }
