"""The page of all schemas: events that come in, and records that others may read."""

from docs.reference.markdown import escaped
from docs.reference.schema_words import described, fields_table, name_of
from rankstream.wire.event_schemas import event_schemas

INTRODUCTION = """# Schemas of events and records

What may stand in each field of what is JSON on our topics, made of the structs that
decode it. `docs/events.md` says what the fields of events are for. `rankstream schemas
--out DIR` writes the same as JSON Schemas, and `docs/contract/` has them with what no
schema can say.
"""


def page() -> str:
    """All of them, each with the structs that it is made of."""
    parts = [INTRODUCTION]
    for name, schema in event_schemas().items():
        parts.append(f"## {name}\n")
        whole, structs = name_of(schema), schema["$defs"]
        for struct in sorted(structs, key=lambda each: each != whole):
            if struct != whole:
                parts.append(f"### {name}: {struct}\n")
            parts.append(escaped(described(structs[struct])) + "\n")
            parts.append(fields_table(structs[struct]))
    return "\n".join(parts)
