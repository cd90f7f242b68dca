"""The page of the API of `rankstream serve`: paths, requests, answers."""

from docs.reference.markdown import escaped, table
from docs.reference.schema_words import (
    Schema,
    described,
    fields_table,
    words_of,
)
from rankstream.operations.serving.openapi import description

INTRODUCTION = """# Paths of the HTTP API

What `rankstream serve` takes and answers, made of its own description, which is `GET
/openapi.json`. `docs/http.md` says how to use it, who may ask, and what happens at its
limits.
"""


REFUSED = "4", "5"
"""First digits of what is no success."""


def page() -> str:
    """Every path, then what all may be refused with, then every body."""
    api = description()
    parts = [INTRODUCTION]
    refusals: dict[str, Schema] = {}
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            parts.append(f"## {method.upper()} {path}\n")
            parts += _operation(operation)
            refusals |= _answers(operation, is_refusal=True)
    parts.append("## Refusals\n")
    parts.append(_answer_table(refusals))
    parts.append("## Bodies\n")
    for name, schema in api["components"]["schemas"].items():
        parts.append(f"### {name}\n")
        parts.append(escaped(described(schema)) + "\n")
        parts.append(fields_table(schema))
    return "\n".join(parts)


def _operation(operation: Schema) -> list[str]:
    parts = [escaped(operation.get("summary", "")) + "\n"]
    if asked := operation.get("parameters"):
        rows = [
            [
                f"`{each['name']}`",
                words_of(each["schema"]),
                escaped(each["description"]),
            ]
            for each in asked
        ]
        parts.append(table(["parameter", "may be", "is"], rows))
    if "requestBody" in operation:
        parts.append(f"The body: {_content(operation['requestBody'])}.\n")
    parts.append(_answer_table(_answers(operation, is_refusal=False)))
    if refusals := _answers(operation, is_refusal=True):
        parts.append(f"It may be refused with {', '.join(refusals)}.\n")
    return parts


def _answers(operation: Schema, *, is_refusal: bool) -> dict[str, Schema]:
    return {
        status: answer
        for status, answer in operation["responses"].items()
        if status.startswith(REFUSED) == is_refusal
    }


def _answer_table(answers: dict[str, Schema]) -> str:
    rows = [
        [status, escaped(answer["description"]), _content(answer)]
        for status, answer in sorted(answers.items())
    ]
    return table(["status", "means", "body"], rows)


def _content(holder: Schema) -> str:
    """Each type of content with its schema."""
    return "; ".join(
        f"`{kind}`, {words_of(each['schema'])}" if "schema" in each else f"`{kind}`"
        for kind, each in holder.get("content", {}).items()
    )
