"""Whose privacy? Columns that look like the id of a person, by their names alone, make a run ask.

A table may have many rows for each person. With "unit: one row" the promise is then about one of them, and says little
about the person. Only the owner knows; what the names of columns suggest is enough to ask. Domains that were called
public may hold the ids themselves, which a run would then write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kamino.constraints import ConstraintClass, Constraints, classify
from kamino.constraints.language.printer import print_name
from kamino.errors import InputError
from kamino.pipeline.settings import ROW, Settings
from kamino.schema import Attribute, Categorical, Integer, Key, Schema, Source
from kamino.schema.files.names import words_of

# Who a row may be about. Many tables have several rows for each of them.
_PEOPLE = (
    "account applicant beneficiary borrower cardholder child citizen client consumer customer cust debtor donor driver "
    "employee emp enrollee guest household individual inmate insured investor learner member panelist parent "
    "participant passenger patient pat payer payee person people player policyholder pupil recipient resident "
    "respondent staff student subject subscriber survivor taxpayer tenant user victim visitor voter worker"
)
_ENDINGS = "identifier pseudonym number uuid guid hash code num uid key ref id no nr"
# Numbers and names that stand for one person by themselves.
_NUMBERS = (
    "ssn nin nino nhs mrn passport email username userid login msisdn imsi imei iban pesel bsn cpf curp dni "
    "aadhaar personnummer nationalid socialsecurity socialsecuritynumber"
)
# Names that may be those of persons, and of much else: enough to ask where real values would be written.
_MAYBE = (
    "id ids pid uid idcode idno idnum idnr caseid subjid usubjid person persons patient patients subject subjects "
    "customer customers client clients respondent respondents participant participants individual user users"
)
_WHO, _NUMBERED, _ALONE = frozenset(_PEOPLE.split()), tuple(_ENDINGS.split()), frozenset(_NUMBERS.split())
_BARE = frozenset(_MAYBE.split())


def looks_like_person(name: str) -> bool:
    """Whether the name of a column says that it tells persons apart.

    >>> [looks_like_person(name) for name in ("patient_id", "customerNumber", "SSN", "zip", "id", "patient_age")]
    [True, True, True, False, False, False]
    """
    words = words_of(name)
    joined = "".join(words)
    if any(word in _ALONE for word in words) or joined in _ALONE:
        return True
    ending = next((each for each in _NUMBERED if joined.endswith(each)), None)
    if ending is None:
        return False
    rest = joined.removesuffix(ending)
    return rest in _WHO or rest.removesuffix("s") in _WHO or any(word in _WHO for word in words)


def person_columns(names: Iterable[str], constraints: Constraints = Constraints()) -> tuple[str, ...]:
    """The columns that look like the id of a person, but for those that a hard key says are different in all rows."""
    keys = {c.attributes for c in constraints if c.is_hard and classify(c) is ConstraintClass.KEY}
    return tuple(name for name in names if looks_like_person(name) and (name,) not in keys)


def asked_columns(
    names: Iterable[str],
    known: Mapping[str, Attribute],
    constraints: Constraints = Constraints(),
    *,
    trust_domain: bool = False,
) -> tuple[str, ...]:
    """The columns for which a run asks whose privacy is promised: by their names, and by what is declared of them.

    A column that is only named `id`, `subject` or the like may be that of persons or of anything else. It is asked
    about where its values are taken from the table, and not where a schema or a database declares it, as a key say.

    Guarantees:
        No row is looked at.  [test_bare_ids_are_asked_about]
    """
    keys = {c.attributes for c in constraints if c.is_hard and classify(c) is ConstraintClass.KEY}
    listed = tuple(names)
    sure = person_columns(listed, constraints)
    bare = [
        name
        for name in listed
        if name not in sure
        and (name,) not in keys
        and "".join(words_of(name)) in _BARE
        and _is_taken_over(known.get(name), trust_domain=trust_domain)
    ]
    return (*sure, *bare)


def _is_taken_over(attribute: Attribute | None, *, trust_domain: bool) -> bool:
    """Whether the values of a column are those of the table, because somebody called them public."""
    if attribute is None:
        return trust_domain
    taken = attribute.source is Source.ASSERTED if attribute.has_domain else trust_domain
    return taken and isinstance(attribute, Categorical | Integer)


def refuse_unsaid_unit(
    names: Iterable[str],
    constraints: Constraints,
    settings: Settings,
    known: Mapping[str, Attribute] = MappingProxyType({}),
) -> None:
    """Refuse a table with the ids of persons where nobody said whose privacy is promised.

    Guarantees:
        Nothing is spent before that is said.  [test_synth_asks_whose_privacy, test_bare_ids_are_asked_about]
    """
    found = asked_columns(names, known, constraints, trust_domain=settings.trust_domain)
    if found and settings.unit is None:
        raise InputError(f"{unit_question(found)}. Nothing was spent")


def unit_question(found: tuple[str, ...]) -> str:
    """What is to be said where columns look like the ids of persons."""
    listed, looks = ", ".join(map(print_name, found)), "looks" if len(found) == 1 else "look"
    return (
        f"found {listed}, which {looks} like the id of a person, and no word on whose privacy is promised; expected "
        f"--unit {print_name(found[0])} --max-rows N (hides all rows of one person together, N of them kept) or "
        f"--unit {ROW} (each row is another person's, or one row is all that is to be hidden)"
    )


def written_ids(schema: Schema) -> tuple[str, ...]:
    """The columns that look like the id of a person, and whose real values are written: they were called public."""
    return tuple(
        name
        for name, source in schema.sources.items()
        if source is Source.ASSERTED and looks_like_person(name) and not isinstance(schema[name], Key)
    )


def id_question(found: tuple[str, ...]) -> str:
    """What is to be said where the real ids of persons would be written."""
    listed, looks = ", ".join(map(print_name, found)), "looks" if len(found) == 1 else "look"
    them, their = ("it", "its") if len(found) == 1 else ("them", "their")
    drops = " ".join(f"--drop {print_name(name)}" for name in found)
    return (
        f"found {listed}, which {looks} like the id of a person, and {their} values called public (--trust-domain): "
        f"real ids would be written, whatever epsilon is; expected {{type: key, repeats: true}} for {them} in a schema "
        f"(see kamino init; ids are made up), {drops}, or --accept (real ids are written, on your word)"
    )
