"""The core under sanitizers: compiled with them, and run over mutated real records."""

import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from models.counts.definition import ClosedImpression
from rankstream.lab.benchmarks.workload import START_MS, Workload, canonical_elements
from rankstream.ranking.combining import combine, draw_seed
from rankstream.wire.events import (
    ACTIVE,
    DETERMINISTIC,
    LOGGED,
    MULTILEAVE,
    PLACKETT_LUCE,
    SCHEMA,
    Click,
    Element,
    Frontier,
    Impression,
    encode_record,
)
from rankstream.wire.topics import CLICKS, QUERIES
from streams.ingest.plain_events import PlainEvents
from streams.native.compiler import (
    COMPILERS,
    FOLDER,
    ZIGLANG,
    compiler_on_path,
    source_files,
)
from streams.native.input_events import Rules
from tests.models.counts.scope_values import ScopeValue
from tests.services import ServiceMissing
from tests.streams.ingest.drawn_events import NOW_MS, DrawnEvents

DRIVER = tuple(
    Path(__file__).with_name(name)
    for name in ("mutations.c", "joined.c", "taken.c", "tables.c", "inputs.c")
)
METHODS = (("pairwise-preference", 5), ("team-draft", 3))
"""Of the two epochs of the experiment `boost` in `taken.c`, and how many rankers."""

FLAGS = (
    "-std=c11", "-O0", "-g", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror",
    "-DFOLD_CHUNK_BYTES=16384",
)  # fmt: skip
"""Not optimised: it compiles in a fifth of the time, and hides no access."""
BOTH = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
UNDEFINED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")


@dataclass(frozen=True)
class Sanitizer:
    """A compiler with sanitizers, and what they are."""

    command: tuple[str, ...]
    said: str


def real_records(n_impressions: int = 400, seed: int = 1) -> Iterator[bytes]:
    """Records of the canonical log: mostly short ones, a long one of each policy."""
    rng = np.random.default_rng(seed)
    for policy in (LOGGED, DETERMINISTIC, PLACKETT_LUCE, MULTILEAVE):
        plan = Workload(
            n_impressions, policy, clicks_per_list=1.2, n_features=policy % 2
        )
        events = canonical_elements(plan, rng)
        varied = _compared if policy == MULTILEAVE else _varied
        elements = [*varied(events, rng)]
        frontier = Frontier(0, 1, START_MS, ACTIVE)
        yield encode_record([SCHEMA, 0, 1, [*elements[:250], frontier]])
        while elements:
            n = int(rng.integers(0, 6))
            # Clicks come before their lists as well.
            several = elements[:n][:: int(rng.choice((1, -1)))]
            elements = elements[n:]
            sequence = int(rng.integers(1 << int(rng.integers(63))))
            yield encode_record([SCHEMA, 3, sequence, [*several, frontier]])


def records_of_scopes(n_impressions: int = 400, seed: int = 1) -> Iterator[bytes]:
    """Heads, pieces and lists of scopes in all forms, each behind its head."""
    rng = np.random.default_rng(seed)
    items = [f"item {number}" for number in range(12)]
    for number in range(n_impressions // 10):
        log = []
        for _ in range(int(rng.integers(40))):
            shown = rng.permutation(12)[: int(rng.integers(1, 12))].tolist()
            ranks = np.flatnonzero(rng.random(len(shown)) < 0.3) + 1
            clicks = {int(rng.integers(2)): ranks.tolist()} if len(ranks) else {}
            group, row = int(rng.integers(5)), int(rng.integers(4))
            one = ClosedImpression(group, shown, clicks)
            if row:
                name, matrix = bytes([row]) * 16, np.full((12, 12), 1 / 12)
                one = one._replace(policy=LOGGED, row=name, placement=matrix)
            log.append(one)
        value = ScopeValue(
            items,
            most_lists=int(rng.choice((0, 2, 64))),
            pieces=range(0, 5, 2) if number % 3 else (),
            piece_lists=number % 2 * 2,
        ).take(log)
        yield value.head()
        yield from value.piece_values().values()
        yield from value.list_values().values()


def records_of_inputs(n_arrays: int = 400, seed: int = 1) -> Iterator[bytes]:
    """Query and click events as ingestion hands them to the core, a few in an array."""
    events = DrawnEvents(seed, rare=0.01)
    rules = Rules(4, 300_000, 1_000)
    for topic, draw in ((QUERIES, events.query), (CLICKS, events.click)):
        stage = PlainEvents(topic, 1, rules)
        for _ in range(n_arrays):
            n = events.below(8)
            yield stage.bridged([events.packed(draw(NOW_MS)) for _ in range(n)])


def _varied(
    events: Iterator[tuple[int, int, Element]], rng: np.random.Generator
) -> Iterator[Element]:
    """Some clicks name an item, some come at once, some impressions are large."""
    items: list[str] = []
    for _, at_ms, element in events:
        if isinstance(element, Impression):
            items = msgspec.msgpack.decode(element.candidates)
            if rng.random() < 0.01:
                large = rng.bytes(int(rng.integers(5_000, 20_000)))
                yield msgspec.structs.replace(element, features=large)
                continue
        elif isinstance(element, Click):
            yield msgspec.structs.replace(
                element,
                at_ms=at_ms - at_ms % 5,
                item_id=str(rng.choice(items)) if rng.random() < 0.4 else "",
                position=int(rng.choice((0, element.position, element.position + 5))),
            )
            continue
        yield element


def _compared(
    events: Iterator[tuple[int, int, Element]], rng: np.random.Generator
) -> Iterator[Element]:
    """Lists of an experiment, of either method by turns; some are not as drawn."""
    for number, (_, _, element) in enumerate(events):
        if not isinstance(element, Impression):
            yield element
            continue
        epoch = number % len(METHODS) + 1
        method, n_rankers = METHODS[epoch - 1]
        items = msgspec.msgpack.decode(element.candidates)
        rankings = {
            f"r{ranker}": [items[row] for row in rng.permutation(len(items))[:8]]
            for ranker in range(n_rankers)
        }
        found = combine(method, rankings, 6, seed=number)
        shown = [items.index(item) for item in found.shown]
        extra = {
            "experiment": {"id": "boost", "epoch": epoch, "method": method},
            "rankings": found.rankings,
            "session": f"s{number}",
            "assignments": found.assignments,
        }
        yield msgspec.structs.replace(
            element,
            seed=draw_seed("boost", epoch, element.impression_id),
            shown=np.array(shown[: 3 + number % 5], "<u2").tobytes(),
            extra=msgspec.msgpack.encode(
                {key: value for key, value in extra.items() if value is not None}
            ),
        )


def sanitizer(folder: Path) -> Sanitizer:
    """The best there is: both sanitizers, else ziglang's and a guarded page.

    Raises
    ------
    ServiceMissing
        Where there is neither.
    """
    found = compiler_on_path()
    candidates = [Sanitizer((*found, *BOTH), "address and undefined")] if found else []
    if importlib.util.find_spec("ziglang"):
        zig = (sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline", *UNDEFINED)
        candidates.append(Sanitizer(zig, "undefined only, of ziglang, and a page"))
    probe = folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    for each in candidates:
        built = _run([*each.command, str(probe), "-o", str(folder / "probe")])
        if built.returncode == 0 and _run([str(folder / "probe")]).returncode == 0:
            return each
    raise ServiceMissing(
        "no compiler with sanitizers: none of CC, "
        f"{', '.join(COMPILERS)} links -fsanitize=address,undefined; install gcc or "
        f"clang with its sanitizers, or run: {sys.executable} -m pip install "
        f"'{ZIGLANG}'"
    )


def driver(
    by: Sanitizer, folder: Path, *flags: str, sources: Path | None = None
) -> Path:
    """The program that mutates records, with the core in it.

    Parameters
    ----------
    sources
        A folder of other sources than the core's own.

    Raises
    ------
    RuntimeError
        With what the compiler said.
    """
    program = folder / "mutations"
    core = sorted(sources.glob("*.c")) if sources else source_files()
    command = [
        *by.command, *FLAGS, *flags, f"-I{sources or FOLDER}",
        *(str(path) for path in core if path.suffix == ".c"), *map(str, DRIVER),
        "-o", str(program), "-lm",
    ]  # fmt: skip
    done = _run(command)
    if done.returncode:
        raise RuntimeError(
            f"the driver must compile; {shlex.join(command)} said {done.stderr}"
        )
    return program


def write_corpus(records: Iterator[bytes], path: Path) -> Path:
    """Records, each behind its length."""
    with path.open("wb") as file:
        for record in records:
            file.write(len(record).to_bytes(4, "little") + record)
    return path


def fuzz(
    program: Path, corpus: Path, n_records: int, seed: int
) -> subprocess.CompletedProcess[str]:
    """Run the driver; its status is 0 only if nothing was found."""
    return _run([str(program), str(corpus), str(n_records), str(seed)])


def fuzz_side_by_side(
    program: Path, corpus: Path, n_records: int, seed: int
) -> list[subprocess.CompletedProcess[str]]:
    """Run it on two cores, each with its half of the records and draws of its own."""
    with ThreadPoolExecutor(2) as pool:
        halves = (n_records // 2, n_records - n_records // 2)
        runs = [
            pool.submit(fuzz, program, corpus, n, 2 * seed + which)
            for which, n in enumerate(halves)
        ]
        return [run.result() for run in runs]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1"}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment
    )
