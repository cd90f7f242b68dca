"""Real clicks of real people, folded in process, against a recount of the file."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest

from rankstream.operations.cli import main
from streams.local import read_changes
from streams.statistics.reader import Statistics
from tests.session.cases import n_cases

SESSIONS = Path("../shared/data/yandex-sessions/sessions.jsonl.gz")

Counts = Counter[tuple[str, str, int]]

pytestmark = pytest.mark.skipif(
    not SESSIONS.exists(), reason=f"the data set yandex-sessions is not at {SESSIONS}"
)


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replay the file in process; gives the folder that it wrote."""
    folder = tmp_path_factory.mktemp("yandex")
    words = ["replay", str(SESSIONS), "--format", "yandex-sessions", "--local"]
    with pytest.MonkeyPatch.context() as patch, (folder / "table").open("w") as file:
        patch.setattr("sys.stdout", file)
        assert main([*words, "--out", str(folder)]) == 0
    return folder


def is_chosen(query: str) -> bool:
    """Whether a query is recounted; all of them are in `make long`."""
    return crc32(query.encode()) % n_cases(6, 1) == 0


def recount() -> tuple[Counts, Counts]:
    """Count shown and clicked by query, item and rank, from the file alone."""
    shown: Counts = Counter()
    clicked: Counts = Counter()
    with gzip.open(SESSIONS, "rt", encoding="utf-8") as file:
        for line in file:
            page = json.loads(line)
            for row in range(len(page["rel"])):
                place = (str(page["q"]), f"{page['q']}:{row + 1}", row + 1)
                shown[place] += 1
                clicked[place] += row in page["clicks"]
    return shown, clicked


def counted(folder: Path) -> tuple[Counts, Counts]:
    """Count the same from what the pipeline wrote."""
    shown: Counts = Counter()
    clicked: Counts = Counter()
    statistics = Statistics(read_changes(folder / "statistics.bin"))
    for query in filter(is_chosen, statistics.queries()):
        for cell in statistics.merged(query).values():
            for item, rank, n_shown, n_clicked in cell.pairs[:, :4].tolist():
                place = (query, cell.items[item], rank)
                shown[place] += n_shown
                clicked[place] += n_clicked
    return shown, clicked


def test_every_event_is_applied(folded: Path) -> None:
    """Nothing is late, orphaned or left open, and repeats of a place count once."""
    text = (folded / "table").read_text(encoding="utf-8")
    rows = re.findall(r"│ +(\S[^│]*?) +│ +([\d,]+) +│", text)
    found = {name: int(count.replace(",", "")) for name, count in rows}

    assert found == {
        "impressions applied": 9_974,
        "clicks applied": 10_739,
        "duplicate": 0,
        "late": 0,
        "orphan": 0,
        "dead letter": 0,
        "pending": 0,
        "all": 20_713,
        "clicked (repeats once)": 10_561,
    }


def test_counts_equal_an_independent_recount(folded: Path) -> None:
    """By query, item and rank, shown and clicked."""
    shown, clicked = recount()

    assert sum(clicked.values()) == 10_561
    chosen = [
        Counter({place: n for place, n in counts.items() if is_chosen(place[0])})
        for counts in (shown, clicked)
    ]
    assert sum(chosen[0].values()) > 10_000
    assert [*counted(folded)] == chosen
