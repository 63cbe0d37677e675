"""Whose privacy? Columns that look like the id of a person, by their names, make a run ask.

A table may have many rows for each person. With "unit: one row" the promise is then about one of them, and says little
about the person. Only the owner knows; what the names of columns suggest is enough to ask. Domains that were called
public may hold the ids themselves, which a run would then write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from kamino.advice import Advice, Level, drafting, dropping, setting, words
from kamino.constraints import ConstraintClass, Constraints, classify
from kamino.constraints.language.printer import print_name
from kamino.errors import InputError
from kamino.pipeline.settings import ROW, Settings
from kamino.schema import Attribute, Boolean, Categorical, Date, Datetime, Integer, Key, Real, Schema, Source
from kamino.schema.files.names import words_of

WHOSE_PRIVACY = "whose-privacy"
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
# What may stand behind such a number or name without making another thing of it, as `porch` and `count` do.
_BEHIND = frozenset(
    f"{_ENDINGS} address addresses addr hash hashed sha md masked enc encrypted token raw clean primary secondary main "
    "home work private business personal official old new original orig current first last full text str string value "
    "val de us uk ch of the".split()
)
# The fewest digits, or characters, that such a number has.
_FEWEST: Mapping[str, int] = MappingProxyType(
    {
        "ssn": 7, "socialsecurity": 7, "socialsecuritynumber": 7, "nin": 8, "nino": 8, "nhs": 9, "passport": 6,
        "email": 6, "msisdn": 7, "imsi": 13, "imei": 13, "iban": 15, "pesel": 9, "bsn": 8, "cpf": 9, "curp": 16,
        "dni": 6, "aadhaar": 11, "personnummer": 6, "nationalid": 5,
    }
)  # fmt: skip
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
    >>> looks_like_person("c_ssn_1"), looks_like_person("3Ssn_Porch")
    (True, False)
    """
    words = words_of(name)
    joined = "".join(words)
    if _number_in(words) is not None:
        return True
    ending = next((each for each in _NUMBERED if joined.endswith(each)), None)
    if ending is None:
        return False
    rest = joined.removesuffix(ending)
    return rest in _WHO or rest.removesuffix("s") in _WHO or any(word in _WHO for word in words)


def _number_in(words: tuple[str, ...]) -> str | None:
    """The number or name in the words of a column that stands for one person by itself; None where there is none."""
    joined = "".join(words)
    if joined in _ALONE:
        return joined
    for place, word in enumerate(words):
        rest = words[place + 1 :]
        if word in _ALONE and all(w in _BEHIND or w in _WHO or w.isdigit() or len(w) == 1 for w in rest):
            return word
    return None


def could_hold_ids(name: str, attribute: Attribute) -> bool:
    """Whether a column could hold the ids that its name speaks of, by what is declared or public of it.

    Truth values, times and fractions are no ids. Where the range or the values are known, they must reach as far as
    such numbers do: a number up to 508 is no social security number, whatever the column is called.

    Guarantees:
        It looks at the attribute only, and doubts no column of which nothing is known.  [test_ids_need_room]
    """
    if isinstance(attribute, Key) or not attribute.has_domain:
        return not isinstance(attribute, Boolean | Date | Datetime)
    fewest = _FEWEST.get(_number_in(words_of(name)) or "", 1)
    match attribute:
        case Categorical():
            values = [value for value in attribute.categories if value != attribute.other]
            # Of a domain that was found, what is rare is not there, as ids are.
            found = attribute.source is Source.PRIVATE
            return found or any(len(str(value).lstrip("-")) >= fewest for value in values)
        case Integer():
            return _reaches(attribute.min, attribute.max, fewest)
        case Real():
            return attribute.decimals == 0 and _reaches(attribute.min, attribute.max, fewest)
        case _:
            return False


def _reaches(low: Any, high: Any, digits: int) -> bool:
    """Whether a range holds numbers of so many digits, and more than a yes or no."""
    return bool(max(abs(low), abs(high)) >= 10 ** (digits - 1) and not 0 <= low <= high <= 1)


def person_columns(
    names: Iterable[str],
    constraints: Constraints = Constraints(),
    known: Mapping[str, Attribute] = MappingProxyType({}),
) -> tuple[str, ...]:
    """The columns that look like the id of a person, but for those that a hard key says are different in all rows.

    What is `known` of a column by declaration must leave room for ids.
    """
    keys = {c.attributes for c in constraints if c.is_hard and classify(c) is ConstraintClass.KEY}
    return tuple(
        name
        for name in names
        if looks_like_person(name) and (name,) not in keys and (name not in known or could_hold_ids(name, known[name]))
    )


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
    sure = person_columns(listed, constraints, known)
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
        raise Advice.of(WHOSE_PRIVACY, unit_question(found), ". Nothing was spent", about=found).error(InputError)


def unit_question(found: tuple[str, ...]) -> Advice:
    """What is to be said where columns look like the ids of persons."""
    listed, looks = ", ".join(map(print_name, found)), "looks" if len(found) == 1 else "look"
    several = words(f"--unit {print_name(found[0])} --max-rows N", f"unit={found[0]!r}, max_rows=N")
    return Advice.of(
        WHOSE_PRIVACY,
        f"found {listed}, which {looks} like the id of a person, and no word on whose privacy is promised; expected ",
        *(several, " (hides all rows of one person together, N of them kept) or ", setting("unit", ROW)),
        " (each row is another person's, or one row is all that is to be hidden)",
        level=Level.WARNING,
        about=found,
    )


def written_ids(schema: Schema) -> tuple[str, ...]:
    """The columns that look like the id of a person, and whose real values are written: they were called public."""
    return tuple(
        name
        for name, source in schema.sources.items()
        if source is Source.ASSERTED
        and looks_like_person(name)
        and not isinstance(schema[name], Key)
        and could_hold_ids(name, schema[name])
    )


def id_question(found: tuple[str, ...]) -> Advice:
    """What is to be said where the real ids of persons would be written."""
    listed, looks = ", ".join(map(print_name, found)), "looks" if len(found) == 1 else "look"
    them, their = ("it", "its") if len(found) == 1 else ("them", "their")
    return Advice.of(
        "real-ids",
        f"found {listed}, which {looks} like the id of a person, and {their} values called public (",
        *(setting("trust_domain"), "): real ids would be written, whatever epsilon is; expected "),
        *(f"{{type: key, repeats: true}} for {them} in a schema (see ", drafting(), "; ids are made up), "),
        *(dropping(found, print_name), ", or ", setting("accept"), " (real ids are written, on your word)"),
        level=Level.WARNING,
        about=found,
    )
