"""The page of what commands print with `--json`: one schema a result."""

from collections.abc import Iterator

from docs.reference.markdown import escaped
from docs.reference.schema_words import Schema, described, fields_table, words_of
from rankstream.operations.commands.results import result_schemas

INTRODUCTION = """# What commands print as JSON

What each command prints with `--json`, made of the types of its answers. It is one line
of JSON. `rankstream schemas --result 'dlq list'` has the same as a JSON Schema, and
`docs/commands.md` what all of them share. Names may be added in a later release: pass
over those that you do not know.
"""


def page() -> str:
    """All results, by the words of the call, each with what it is made of."""
    parts = [INTRODUCTION]
    for call, schema in sorted(result_schemas().items()):
        parts.append(f"## {call}\n")
        parts += _described(schema)
        for name, struct in schema.get("$defs", {}).items():
            parts.append(f"**{name}**\n")
            parts += _described(struct)
    return "\n".join(parts)


def _described(schema: Schema) -> Iterator[str]:
    if said := described(schema):
        yield f"{escaped(said)}\n"
    if schema.get("properties"):
        yield fields_table(schema)
    else:
        yield f"It is: {words_of(schema)}.\n"
