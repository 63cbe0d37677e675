"""A draft for the OpenDP deployments registry: what a certificate knows, in the fields of the registry's YAML schema.

The schema is `schemas/deployments-schema.yaml` of https://github.com/opendp/deployments-registry-data. Who released the
table, what for and when is for people to fill in: such fields say `FILL IN`, and the registry's own checks refuse them
until that is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kamino.errors import InputError
from kamino.io.atomic import atomic_file
from kamino.pipeline.output.release_mark import FOR_RELEASE, mark_of_certificate
from kamino.pipeline.verifying.certificate_file import Certificate, read_certificate
from kamino.schema import Source

FILL_IN = "FILL IN"
_HEADER = (
    "# A draft for https://github.com/opendp/deployments-registry-data, made from a certificate by Kamino.\n"
    "# Fill in what says FILL IN, and look through the rest.\n"
)
_RELATIONS = {
    "add_remove": "Adjacent datasets differ in one unit, present in one and absent in the other.",
    "replace": "Adjacent datasets differ in one unit, which is replaced by another.",
}
_NAMES = {"add_remove": "adding or removing one unit", "replace": "replacing one unit"}


def write_entry(certificate: str | Path, path: str | Path) -> None:
    """Write the draft for a certificate that was verified.

    Raises:
        InputError: the certificate says that its table is not for release, or the file cannot be written.
    """
    entry = entry_of(read_certificate(certificate))
    text = yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=100)
    with atomic_file(Path(path)) as handle:
        handle.write(f"{_HEADER}{text}".encode())


def entry_of(certificate: Certificate) -> dict[str, Any]:
    """The fields of a registry entry that a certificate can fill.

    Guarantees:
        Every field is one of the registry's schema.  [test_registry_entries_have_the_fields_of_its_schema]
    """
    document = certificate.document
    mark = mark_of_certificate(document)
    if mark != FOR_RELEASE:
        raise InputError(f"{certificate.source}: found a table that is {mark}; expected one for release")
    return {
        "url_slug": FILL_IN,
        "deployment": {
            "basic": _basic(document),
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": f"Tables with the attributes {', '.join(certificate.schema.names)}.",
                "unprotected_quantities": _unprotected(document),
            },
            "privacy_loss": _privacy_loss(document),
            "deployment_model": {
                "model_name": "Central",
                "release_type": "One release",
                "release_type_details": f"{FILL_IN}: plans for further releases from the same data, if any.",
                "data_source_type": f"{FILL_IN}: Static or Dynamic",
                "access_type": "Non-interactive",
            },
            "implementation": _implementation(certificate),
            "administrative": {"status": "Draft", "registry_authors": [FILL_IN], "tier": 3},
        },
    }


def _basic(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": FILL_IN,
        "data_curators": [
            {"data_curator_name": FILL_IN, "data_curator_type": f"{FILL_IN}: Government, Industry or Nonprofit"}
        ],
        "description": f"A synthetic table of {document['rows']:,} rows. {FILL_IN}: what it is about.",
        "intended_use": FILL_IN,
        "data_product_type": "Synthetic data",
        "data_product_region": FILL_IN,
        "publication_date": f"{FILL_IN}: YYYY-MM-DD",
    }


def _unprotected(document: Mapping[str, Any]) -> str:
    """What was taken as public: constraints, and the domains that somebody asserted or declared."""
    domains = document["domains"]
    asserted, declared = domains.get(Source.ASSERTED.value, []), domains.get(Source.DECLARED.value, [])
    parts = ["Names of attributes and integrity constraints were taken as public."]
    if declared:
        parts.append(f"Domains declared in a schema: {', '.join(map(str, declared))}.")
    if asserted:
        parts.append(
            f"Domains taken from the data because they were asserted to be public: {', '.join(map(str, asserted))}."
        )
    return " ".join(parts)


def _privacy_loss(document: Mapping[str, Any]) -> dict[str, Any]:
    privacy = document["privacy"]
    own = privacy["neighbours"]
    other = next(name for name in _RELATIONS if name != own)
    return {
        "privacy_unit": privacy["unit"],
        "privacy_unit_details": f"The unit is {privacy['unit']}. {_RELATIONS[own]}",
        "privacy_parameters": {"epsilon": privacy["spent_epsilon"][own], "delta": privacy["delta"]},
        "privacy_parameters_details": (
            f"Epsilon is for {_NAMES[own]}; for {_NAMES[other]} it is at most {privacy['spent_epsilon'][other]:.6g} at "
            f"the same delta. The budget was epsilon {privacy['epsilon']:g}."
        ),
    }


def _implementation(certificate: Certificate) -> dict[str, Any]:
    document = certificate.document
    kinds = sorted({entry["kind"] for entry in certificate.ledger["entries"]})
    hard = [claim for claim in document["constraints"] if claim["hard"]]
    return {
        "preprocessing_and_hyperparameter_tuning": (
            f"Finding types and domains took {document['finding_domains']['share']:.2%} of the budget. "
            f"{FILL_IN}: preparation of the data before, if any."
        ),
        "mechanisms": (
            f"{document['privacy']['releases']} releases ({', '.join(kinds)}) with Gaussian noise, by Kamino "
            f"{document['kamino']}. Counts have exact discrete Gaussian noise by OpenDP."
        ),
        "composition": "Composed by privacy loss distributions (dp-accounting), in closed form where all is Gaussian.",
        "post_processing": (
            f"Rows are drawn from a model of the noisy statistics under {len(hard)} hard constraints, at no cost."
        ),
        "justification": f"{FILL_IN}: why these parameters.",
        "additional_information": (
            f"SHA-256 of the table: {document['sha256']}. Its certificate can be checked with `kamino verify`."
        ),
    }
