"""The page of settings: as it is written, with what each may be and its section is.

`docs/settings.md` says what settings are for. The schema of the settings says what may
stand there, so that is added to its tables, and each section begins with the first
sentence of its docstring.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from docs.reference.markdown import escaped
from docs.reference.schema_words import Schema, described, name_of, words_of
from rankstream.settings import Settings

PAGE = Path(__file__).parents[1] / "settings.md"

SECTION = re.compile(r"## `\[(.+)\]`$")
ROW = re.compile(r"\| `(\w+)` \| (.*)$")
HEAD, RULE = "| setting | default | is |", "|---|---|---|"


def page(text: str | None = None) -> str:
    """The page with a column more.

    Parameters
    ----------
    text
        Another than that of `docs/settings.md`.
    """
    if text is None:
        text = PAGE.read_text(encoding="utf-8")
    return "\n".join(_lines(text.splitlines())) + "\n"


def _lines(lines: list[str]) -> Iterator[str]:
    (reference,), definitions = msgspec.json.schema_components([Settings])
    settings = definitions[name_of(reference)]
    fields: dict[str, Schema] = {}
    for line in lines:
        row = ROW.match(line)
        if section := SECTION.match(line):
            structs = _structs(section[1].split("."), settings, definitions)
            fields = _fields(structs)
            yield line
            if len(structs) == 1:
                yield ""
                yield escaped(described(structs[0]).partition("\n\n")[0])
        elif line == HEAD:
            yield "| setting | default | may be | is |"
        elif line == RULE and fields:
            yield f"{RULE}---|"
        elif row and row[1] in fields:
            default, _, rest = row[2].partition(" | ")
            yield f"| `{row[1]}` | {default} | {_words(fields[row[1]])} | {rest}"
        else:
            yield line


def _fields(structs: list[Schema]) -> dict[str, Schema]:
    """Fields of all of them; one that tells them apart may be any of its values."""
    fields: dict[str, Schema] = {}
    for struct in structs:
        for name, field in struct["properties"].items():
            values = fields.get(name, {}).get("enum", [])
            fields[name] = (
                {"enum": [*values, *field["enum"]]} if "enum" in field else field
            )
    return fields


def _words(field: Schema) -> str:
    return "a section" if "$ref" in field else words_of(field)


def _structs(
    path: list[str], struct: Schema, definitions: dict[str, Schema]
) -> list[Schema]:
    """The structs that a section may be; those of a curve depend on its estimator."""
    if not path:
        return [struct]
    found = []
    field = struct["properties"][path[0]]
    rest = path[1:]
    if rest and rest[0] == "NAME":
        field, rest = field["additionalProperties"], rest[1:]
    for each in field.get("anyOf", [field]):
        if "$ref" in each:
            found += _structs(rest, definitions[name_of(each)], definitions)
    return found
