"""Does a certificate hold? Everything in it that follows from the table, the rules and the events is derived again.

The private table is not needed, and what cannot be derived without it is named: that the releases which are listed
are those which were made, and with the noise that is stated, is the word of whoever released the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kamino
from kamino.io.databases.storing import DatabaseTable
from kamino.pipeline.output.release_mark import mark_of_certificate
from kamino.pipeline.output.writing import certificate_path
from kamino.pipeline.verifying.case import Case
from kamino.pipeline.verifying.certificate_file import read_certificate
from kamino.pipeline.verifying.checks import CHECKS, Finding

# What is looked at. Other names are what a certificate says beside it: its version, remarks.
_DERIVED = frozenset(
    (
        *("format", "sha256", "privacy", "domains", "finding_domains", "rows", "constraints", "mark"),
        *("settings", "schema", "ledger", "hashes", "given", "signature", "method"),
    )
)


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What a certificate claims of a table, beside what was found.

    `mark` says whether the table may be released, as its certificate says or its budget forbids. `stated` names what
    the certificate says and nothing here can tell. `signed_by` is the fingerprint of the key whose signature is valid,
    None if there is none.
    """

    table: str
    certificate: str
    mark: str
    findings: tuple[Finding, ...]
    stated: tuple[str, ...]
    signed_by: str | None

    @property
    def holds(self) -> bool:
        """Whether everything that was looked at is as claimed."""
        return all(each.holds for each in self.findings)

    @property
    def failed(self) -> tuple[Finding, ...]:
        """What is not as claimed."""
        return tuple(each for each in self.findings if not each.holds)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `json.dumps` takes."""
        findings = [
            {"what": each.what, "claimed": each.claimed, "found": each.found, "holds": each.holds}
            for each in self.findings
        ]
        return {
            "table": self.table,
            "certificate": self.certificate,
            "holds": self.holds,
            "mark": self.mark,
            "signed_by": self.signed_by,
            "findings": findings,
            "stated": list(self.stated),
        }


def verify(
    table: str | Path,
    certificate: str | Path | None = None,
    *,
    key: str | Path | None = None,
    constraints: str | Path | None = None,
) -> Verification:
    r"""Compare a table, a file or one of a database, with its certificate, by default the one beside it.

    With `key`, the file of a public key, the certificate must be signed by it. With `constraints`, a constraint file,
    the certificate must be about these, and the reference tables that they name are read as well.

    >>> import tempfile
    >>> import kamino
    >>> from kamino.datasets import TAX_CONSTRAINTS, tax
    >>> made = kamino.Synthesizer(constraints=TAX_CONSTRAINTS, epsilon=1.0, trust_domain=True).fit(tax(300))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = made.write(f"{folder}/out.csv", 10)
    ...     first = verify(written.path)
    ...     _ = written.path.write_text(written.path.read_text() + "1,2\n")
    ...     second = verify(written.path)
    >>> first.holds, second.holds, second.failed[0].what
    (True, False, 'bytes of the table')

    Raises:
        InputError: a file cannot be read, or is no certificate.

    Guarantees:
        Real certificates hold.  [test_real_certificates_hold]
        A changed cell, row, event, constraint, hash, mark or signature does not.  [test_what_was_changed_does_not_hold]
    """
    path, database = Path(table), DatabaseTable.of(table)
    beside = certificate_path(path) if database is None else database.certificate
    read = read_certificate(beside if certificate is None else certificate)
    rules = None if constraints is None else Path(constraints)
    case = Case(path=path, certificate=read, database=database, key=key, rules=rules)
    findings = tuple(finding for check in CHECKS for finding in check(case))
    return Verification(
        table=str(path) if database is None else str(database),
        certificate=read.source,
        mark=mark_of_certificate(read.document),
        findings=findings,
        stated=tuple(name for name in read.document if name not in _DERIVED and not _is_worded(name, read.document)),
        signed_by=case.signed_by,
    )


def _is_worded(name: str, document: Mapping[str, Any]) -> bool:
    """Whether a part is made of words that this version can derive again."""
    return name == "words" and document.get("kamino") == kamino.__version__
