"""What was sent against what came out."""

from collections import Counter
from typing import Any

from streams.recount.differences import Verdict
from streams.statistics.reader import Statistics
from tests.fire.events import ACTIONS, KEEP_MS
from tests.fire.expectations import Expected, Letter, query_counts
from tests.fire.letters import Found, FoundLetter


def verdict_of(expected: Expected, found: Found) -> tuple[Verdict, int]:
    """The verdict, and how many dead letters are missing or not as they must be."""
    verdict = Verdict()
    _compare_applied(expected, found, verdict)
    _compare_aside(expected, found, verdict)
    _compare_statistics(expected, found, verdict)
    for where, must_be, counted in (
        ("fold", expected.outcomes(), found.outcomes),
        ("ingestion", expected.ingestion(), found.ingestion),
    ):
        for name, count in must_be.items():
            verdict.compare(f"{where} {name}", count, counted[name])
    missing = _compare_letters(expected, found, verdict)
    return verdict, missing


def _compare_applied(expected: Expected, found: Found, verdict: Verdict) -> None:
    for name, one in expected.shown.items():
        entries = found.applied.get(name, [])
        verdict.compare(f"impression {name}", 1, len(entries))
        for query, intervention, items, marks in entries[:1]:
            must_be = (one.query, one.intervention, one.items)
            if (query, intervention, items) != must_be:
                verdict.find("wrong", f"impression {name}: {query!r}, {items}")
            if marks != sorted(marks, key=lambda mark: mark[:2]):
                verdict.find("wrong", f"impression {name}: clicks out of order")
            where = f"clicks of {name}"
            _compare_counts(where, Counter(one.marks), Counter(marks), verdict)
    for name in found.applied.keys() - expected.shown.keys():
        verdict.find("extra", f"impression {name}")


def _compare_aside(expected: Expected, found: Found, verdict: Verdict) -> None:
    _compare_counts("set aside", expected.aside, found.aside, verdict)


def _compare_counts(
    where: str, expected: Counter[Any], found: Counter[Any], verdict: Verdict
) -> None:
    for what in expected.keys() | found.keys():
        label = f"{where}: {what!r:.160}"
        if what not in expected:
            verdict.find("extra", label, found[what])
        else:
            verdict.compare(label, expected[what], found[what])


def _compare_statistics(expected: Expected, found: Found, verdict: Verdict) -> None:
    counted = statistics_counts(found)
    by_query = query_counts(expected, oldest_eras(found), ACTIONS)
    for place in by_query.keys() | counted.keys():
        where = f"statistics of {place}"
        if place not in by_query:
            verdict.find("extra", where)
        else:
            one = Counter({k: n for k, n in by_query[place].items() if n})
            _compare_counts(where, one, counted.get(place, Counter()), verdict)


def oldest_eras(found: Found) -> dict[int, int]:
    """The least era that lives at the watermark of each partition's statistics."""
    return {
        source: (one.watermark_ms or 0) // KEEP_MS - 1
        for one in Statistics(found.statistics).counted
        for source in one.sources
        if one.watermark_ms is not None
    }


def statistics_counts(found: Found) -> dict[tuple[str, str], Counter[object]]:
    """What the statistics say, groups, candidate sets and eras together."""
    statistics = Statistics(found.statistics)
    classes = {
        n: name for one in statistics.counted for n, name in enumerate(one.classes)
    }
    counted: dict[tuple[str, str], Counter[object]] = {}
    names = ("impressions", "without_click", "clicks", "clicks_squared")
    columns = ("shown", "clicked", "first_click", "shown_to_first", "shown_to_last")
    for name in statistics.names():
        cell = statistics.cell(name)
        counts = counted.setdefault((name.query, name.intervention), Counter())
        for total in names:
            counts[total] += cell.total(total)
        for item, rank, *values in cell.pairs.tolist():
            for column, value in zip(columns, values, strict=False):
                counts[column, cell.items[item], rank] += value
        for number, item, rank, count in cell.rewards.tolist():
            counts[classes[number], cell.items[item], rank] += count
    for place, counts in counted.items():
        counted[place] = Counter({what: n for what, n in counts.items() if n})
    return counted


def _compare_letters(expected: Expected, found: Found, verdict: Verdict) -> int:
    by_place: dict[object, list[FoundLetter]] = {}
    for letter in found.letters:
        by_place.setdefault(letter.place, []).append(letter)
    missing = 0
    for place, must_be in expected.letters.items():
        there = by_place.pop(place, [])
        if len(there) > 1:
            verdict.find("double", f"dead letter of {place}", len(there) - 1)
        if not there:
            missing += 1
            verdict.find("lost", f"dead letter of {place}, {must_be.code}", 0)
        elif not _is_same(must_be, there[0]):
            missing += 1
            verdict.find("wrong", f"dead letter of {place}: {there[0].added}")
    for other, letters in by_place.items():
        code = letters[0].added.get("code")
        verdict.find("extra", f"dead letter of {other}: {code}", len(letters))
    return missing


def _is_same(must_be: Letter, there: FoundLetter) -> bool:
    """Value, key and headers byte for byte; a letter of the join has its value only."""
    is_reason_whole = {"stage", "code", "exception.message"} <= there.added.keys()
    same = is_reason_whole and there.value == must_be.value
    same = same and there.added["code"] == must_be.code
    if must_be.is_of_join:
        return same and there.added["stage"] == "join"
    return same and (there.key, there.headers) == (must_be.key, must_be.headers)
