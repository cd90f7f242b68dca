"""Settings that are malformed, or called by an old name, in words."""

import re
from typing import Any, get_args, get_origin

import msgspec

from rankstream.configuration.section import Fault
from rankstream.wire.nearest_name import meant

RENAMED = {
    "delivery.checkpoint_s": "delivery.commit_s",
    "kafka.front_door_partitions": "kafka.input_partitions",
}

GONE = {"limits.list_masks": "clicked ranks are always kept by list now"}

WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
BOUNDS = {">=": "{} or more", ">": "more than {}", "<=": "{} or less", "<": "below {}"}

_expected = re.compile(r"Expected `(\w+)`(?: (>=|>|<=|<) ([\d.]+))?(?:, got `(\w+)`)?$")


def renamed(tree: dict[str, Any]) -> list[Fault]:
    """Old names that are set, each with what to say of it."""
    said = {old: f"{old} is called {new} now" for old, new in RENAMED.items()}
    said |= {old: f"{old} has gone: {why}" for old, why in GONE.items()}
    found = []
    for old, fact in said.items():
        section, name = old.split(".")
        if isinstance(tree.get(section), dict) and name in tree[section]:
            found.append((old, fact))
    return found


def fault(tree: dict[str, Any], error: Exception, whole: type[msgspec.Struct]) -> Fault:
    """The full name of the setting that is malformed, and a sentence about it."""
    fact, _, place = str(error).partition(" - at ")
    place = place.strip("`").removeprefix("$").removeprefix(".")
    for table, form in _named_tables(whole).items():
        if place.startswith(f"{table}[...]"):
            # The library does not say which of the tables it is.
            for name, value in tree[table].items():
                try:
                    msgspec.convert(value, form)
                except msgspec.ValidationError as inner:
                    said = _of_section(f"{table}.{name}", form, value, str(inner))
                    return _with_number(tree, *said)
    told = f"{fact} - at `$.{place}`" if place else fact
    return _with_number(tree, *_said("", whole, told))


def _named_tables(whole: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct]]:
    """What is in each table of sections by name, such as `models`."""
    return {
        field.name: get_args(field.type)[1]
        for field in msgspec.structs.fields(whole)
        if get_origin(field.type) is dict
    }


def _of_section(setting: str, form: Any, value: Any, told: str) -> Fault:
    """As `_said`, of a section that may be of several forms."""
    forms = {each.__struct_config__.tag: each for each in get_args(form) or (form,)}
    first = next(iter(forms.values()))
    name = first.__struct_config__.tag_field
    tag = value.get(name, first.__struct_config__.tag) if isinstance(value, dict) else 0
    if isinstance(value, dict) and not (isinstance(tag, str | None) and tag in forms):
        setting = f"{setting}.{name}"
        return setting, f"{setting} must be one of {[*forms]}; got {tag!r}"
    return _said(setting, forms.get(tag, first), told)


def _said(above: str, form: type[msgspec.Struct], told: str) -> Fault:
    """As `fault`, of what the library told of a section at a place."""
    fact, _, place = told.partition(" - at ")
    place = place.strip("`").removeprefix("$").removeprefix(".")
    setting = ".".join(filter(None, (above, place)))
    named = re.search(r"(unknown|required) field `(.*?)`", fact)
    if named:
        setting = ".".join(filter(None, (setting, named[2])))
        if named[1] == "required":
            return setting, f"{setting} must be set; it is missing"
        return setting, f"{setting} is no setting; {_meant(named[2], form, place)}"
    found = _expected.match(fact)
    if not found:
        return setting, f"{setting}: {fact}"
    kind, comparison, bound, got = found.groups()
    must = f"{setting} must be {WORDS.get(kind, kind)}"
    if comparison:
        must += f", {BOUNDS[comparison].format(bound)}"
    return setting, f"{must}; got {WORDS.get(got, got)}" if got else must


def _with_number(tree: dict[str, Any], setting: str, fact: str) -> Fault:
    """The same, with the number that is set, which the library leaves out."""
    value: Any = tree
    for part in setting.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if ";" in fact or not isinstance(value, int | float):
        return setting, fact
    return setting, f"{fact}; got {value}"


def _meant(name: str, form: type[msgspec.Struct], place: str) -> str:
    """What a name that is not known may have meant."""
    for part in filter(None, place.split(".")):
        found = next(f.type for f in msgspec.structs.fields(form) if f.name == part)
        # A section that may be absent is one of two.
        form = next((x for x in get_args(found) if x is not type(None)), found)
    known = [field.name for field in msgspec.structs.fields(form)]
    section, _, rest = name.partition("_")
    if not place and section in known and rest:
        setting = f"RANKSTREAM_{section}__{rest}".upper()
        return f"a variable has two underscores between: {setting}"
    return meant(name, known)
