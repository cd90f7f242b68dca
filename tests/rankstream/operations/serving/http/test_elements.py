"""What is counted in JSON before it is decoded, against what decoding finds."""

import json
import random
from typing import Any

import pytest

from rankstream.operations.serving.http.elements import (
    WINDOW_BYTES,
    Elements,
    Values,
    lines_of,
    n_values,
)
from rankstream.operations.serving.problems import Problem, malformed

DOCUMENTS: list[Any] = [
    [],
    [1],
    [[], {}, "", None, [[1, 2], 3]],
    ["a,b", "[,]", '"', '\\",', "\\\\", '\\\\",,"', "\u00e9,\u2028"],
    [{"a": [1, {"b": "}],"}], "c": "\\"}, "{"] * 3,
    [[[[[0]]]], ",", [1, 2, 3]],
]


def n_of(value: Any) -> int:
    """Values in a value, itself one."""
    inner = value.values() if isinstance(value, dict) else value
    return 1 + (sum(map(n_of, inner)) if isinstance(value, dict | list) else 0)


def refusal() -> Problem:
    """Beyond the limit of elements."""
    return malformed("elements")


def refusal_of_values() -> Problem:
    """Beyond the limit of values."""
    return malformed("values")


def refused(
    pieces: list[bytes], most: int, most_values: int = 10**9, *, lines: bool = False
) -> str:
    """What is refused in a body of these pieces; empty where nothing is."""
    elements = Elements(most, refusal, most_values, refusal_of_values, are_lines=lines)
    try:
        for piece in pieces:
            elements.take(piece)
    except Problem as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 1])
def test_elements_are_those_that_decoding_finds(document: Any, indent: Any) -> None:
    """One more than may be is refused, and no fewer; however the bytes are cut."""
    rng = random.Random(7)  # noqa: S311
    body = json.dumps(document, indent=indent, ensure_ascii=False).encode()
    n = max(1, len(document))
    cuts = [[body[i : i + 1] for i in range(len(body))], [body]]
    for _ in range(20):
        ends = sorted(rng.sample(range(len(body) + 1), 2))
        cuts.append([body[: ends[0]], body[ends[0] : ends[1]], body[ends[1] :]])
    for pieces in cuts:
        assert refused(pieces, n) == ""
        if n > 1:
            assert refused(pieces, n - 1) == "elements"


def test_a_long_text_is_followed_over_windows() -> None:
    """Escapes at the border of two, and marks inside, are not elements."""
    for before in range(4):
        text = "x" * (WINDOW_BYTES - 4 + before) + '\\",' * 20_000
        body = json.dumps([text, [text]]).encode()
        assert refused([body], 2) == ""
        assert refused([body], 1) == "elements"


@pytest.mark.parametrize("document", [*DOCUMENTS, {"a": [1, {"b": []}]}, 7, "x"])
def test_values_are_never_fewer_than_there_are(document: Any) -> None:
    """Nor more, but for marks in texts."""
    body = json.dumps(document).encode()
    assert n_values(body) >= n_of(document)
    if b'"' not in body:
        assert n_values(body) <= n_of(document) + body.count(b"[]") + body.count(b"{}")
    outer = b' {"a": %b}' % body
    assert refused([outer[:5], outer[5:]], 1, n_values(outer)) == ""
    assert refused([outer[:5], outer[5:]], 1, n_of(document) - 1) == "values"


def test_lines_are_those_that_are_not_blank() -> None:
    """However they are cut, and whatever quotes they have."""
    body = b'\n \n{"a": 1}\r\n\n"\n  [1,\n\t\nx'
    lines = [line for line in body.split(b"\n") if line.strip()]
    assert lines_of(body) == lines
    for end in range(len(body) + 1):
        pieces = [body[:end], body[end:]]
        assert refused(pieces, len(lines), lines=True) == ""
        assert refused(pieces, len(lines) - 1, lines=True) == "elements"


def test_blanks_before_an_array_hide_nothing() -> None:
    """However many there are."""
    pieces = [b" " * 100, b"\n" * 100, b"  [1,", b"2,3]"]
    assert refused(pieces, 3) == ""
    assert refused(pieces, 2) == "elements"


def test_no_more_is_looked_at_than_holds_too_many() -> None:
    """Of a body of megabytes."""
    elements = Elements(10_000, refusal, 10**9, refusal_of_values)
    with pytest.raises(Problem, match="elements"):
        elements.take(b"[" + b"1," * 1_900_000)
    assert elements.n == pytest.approx(10_000, abs=WINDOW_BYTES)
    assert elements.n_bytes <= 2 * 10_000 + WINDOW_BYTES


def test_what_is_no_text_hides_no_values_of_attributes() -> None:
    """A member of the wrong type is refused for that later; attributes count now."""
    values = Values(400)
    many = b"[" + b",".join([b"1"] * 200) + b"]"
    for other in (b'"AAAA"', b"5", b"[1]"):
        document = b'{"data_base64":' + other + b',"attributes":' + many + b"}"
        with pytest.raises(Problem):
            values.check(document)


@pytest.mark.parametrize("first", [b"attributes", rb"\u0061ttributes"])
def test_a_second_name_hides_no_values_of_attributes(first: bytes) -> None:
    """Of a name that comes twice the decoder makes both, however it is written."""
    many = b"[" + b",".join([b"1"] * 200) + b"]"
    document = b'{"%b":%b,"attributes":{}}' % (first, many)
    with pytest.raises(Problem):
        Values(400).check(document)


@pytest.mark.parametrize(("n", "is_refused"), [(99, False), (100, True)])
def test_attributes_have_a_quarter_of_the_values(n: int, is_refused: bool) -> None:
    """And no more; the array that holds them is one, too."""
    document = b'{"attributes":[' + b",".join([b"1"] * n) + b"]}"
    try:
        Values(400).check(document)
    except Problem:
        assert is_refused
    else:
        assert not is_refused
