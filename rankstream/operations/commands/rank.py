"""`rankstream rank`: scores and ranks of the items of a file, by a trained snapshot."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from producers.formats.feature_rows import FeatureRows, read_feature_rows
from producers.formats.source_file import created
from rankstream.adapters.file_formats import FEATURES
from rankstream.operations.answers.copies import RankedItems
from rankstream.operations.answers.exports.csv_lines import csv_lines
from rankstream.operations.answers.folders import snapshot_in
from rankstream.operations.commands import write_json
from rankstream.operations.commands.options.files import add_columns
from rankstream.operations.commands.options.log import columns_asked
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted, visible
from rankstream.ranking.checked_weights import checked_weights
from rankstream.ranking.multileaving import ONE_CANDIDATE
from rankstream.ranking.served_model import ServedModel
from rankstream.settings import load_settings
from rankstream.wire.envelope import TREES, Snapshot, pointer_of

if TYPE_CHECKING:
    import pyarrow as pa

HEAD = ("query", "rank", "item", "score")

ENDINGS = (".csv", ".jsonl", ".ndjson", ".parquet")

ROWS_AT_ONCE = 100_000

EPILOG = """examples:
  rankstream rank --model run/ --features products.csv --out ranked.csv
  rankstream rank --model run/search@0.5000.snapshot --features test.txt --out out.jsonl
  rankstream rank --model run/ --features pairs.parquet --columns query=words,item=sku

Rows of a query are its candidates, wherever they stand in the file: features are
normalised among them, as the snapshot says. Columns are found by the names of the
features that the ranker was trained on; others may be there. Without a column of
queries all rows are one query's. For trees an empty cell is a feature that is missing.

What is written goes by the ending of --out: .csv and .parquet have a row an item
(query, rank, item, score), .jsonl has a line a query, as `rankstream evaluate` takes
it. Without --out it is CSV on standard output.
"""


class Ranked(NamedTuple):
    """A query with its items, the best first.

    Parameters
    ----------
    query
        Its id; empty where the file names none.
    items : [n_items]
    scores : [n_items]
    """

    query: str
    items: list[str]
    scores: list[float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--model",
        type=Path,
        required=True,
        metavar="PATH",
        help="the snapshot: its file, or the folder of `rankstream train --out`",
    )
    parser.add_argument(
        "--features",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="features of items: CSV, Parquet, JSON lines or LETOR, a row an item",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where to write: FILE.csv, FILE.jsonl or FILE.parquet",
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON, a query an object; not --out"
    )
    add_columns(parser)


def run(arguments: argparse.Namespace) -> int:
    """Rank, and write what came of it."""
    load_settings(arguments.config)
    if arguments.out is not None:
        if arguments.json:
            raise ValueError(
                f"--json must go without --out, whose ending says what is written; got "
                f"both: leave out one, or name {arguments.out.with_suffix('.jsonl')}"
            )
        _check_ending(arguments.out)
    snapshot = snapshot_in(arguments.model)
    columns = columns_asked(arguments)[""]
    with ProgressLine("reading", total=None, unit="rows") as line:
        line.note("features")
        rows = read_feature_rows(
            arguments.features,
            columns=columns,
            names=snapshot.feature_names,
            takes_missing=snapshot.kind == TREES,
        )
        _check_width(snapshot, rows, named=FEATURES in columns)
    ranked = _ranked(snapshot, rows)
    if arguments.json:
        write_json([RankedItems(*each).to_dict() for each in ranked])
        return 0
    if arguments.out is None:
        sys.stdout.writelines(_csv_lines(ranked))
        return 0
    _write(arguments.out, ranked)
    sys.stderr.write(
        f"{arguments.out}: {counted(len(rows.items), 'item')} of "
        f"{counted(len(_places(rows)), 'query', 'queries')}, ranked by "
        f"{visible(snapshot.intervention or snapshot.model)}\n"
    )
    return 0


def _check_ending(out: Path) -> None:
    if out.suffix not in ENDINGS:
        raise ValueError(
            f"--out must end with one of {', '.join(ENDINGS)}, which says what is "
            f"written; got {out}: name it {out.with_suffix('.csv')}, say"
        )


def _check_width(snapshot: Snapshot, rows: FeatureRows, *, named: bool) -> None:
    """A snapshot without names goes by the number of features, in their order."""
    if len(rows.names) == snapshot.n_features:
        return
    remedy = (
        "name as many columns"
        if named
        else "name the columns with --columns features=A+B or features=PREFIX*"
    )
    raise ValueError(
        f"features must be {snapshot.n_features} of an item, as version "
        f"{pointer_of(snapshot)} of {snapshot.model!r} was trained on; the file has "
        f"{len(rows.names)}: {', '.join(rows.names)!r:.200}: {remedy}"
    )


def _places(rows: FeatureRows) -> dict[str, list[int]]:
    """Rows of each query, in the order in which queries come."""
    if rows.queries is None:
        return {"": [*range(len(rows.items))]}
    found: dict[str, list[int]] = {}
    for number, query in enumerate(rows.queries):
        found.setdefault(query, []).append(number)
    return found


def _ranked(snapshot: Snapshot, rows: FeatureRows) -> Iterator[Ranked]:
    """Each query, ranked as rankers serve it without chance.

    Raises
    ------
    ValueError
        Where an item comes twice, or the snapshot gives no finite scores.
    """
    checked = checked_weights(snapshot, None)
    served = ServedModel(snapshot, checked, pointer_of(snapshot), 0.0)
    places = _places(rows)
    with ProgressLine("ranking", total=len(places), unit="queries") as line:
        for number, (query, inside) in enumerate(places.items(), 1):
            items = [rows.items[each] for each in inside]
            if len({*items}) < len(items):
                again = next(each for each in items if items.count(each) > 1)
                raise ValueError(
                    f"an item must be there once for each query; {again!r:.60} of "
                    f"query {query!r:.60} comes again: leave the others out"
                )
            order, scores = _order(served, rows.features[inside])
            yield Ranked(query, [items[each] for each in order], scores)
            line.show(number)


def _order(
    served: ServedModel, features: npt.NDArray[np.float32]
) -> tuple[list[int], list[float]]:
    found = served.rank(
        features,
        cutoff=len(features),
        policy="deterministic",
        seed=0,
        multileaving=ONE_CANDIDATE,
    )
    order = found.order.tolist()
    return order, [float(found.scores[each]) for each in order]


def _csv_lines(ranked: Iterator[Ranked]) -> Iterator[str]:
    yield csv_lines([HEAD])
    for each in ranked:
        yield csv_lines(_rows_of(each))


def _rows_of(each: Ranked) -> Iterator[tuple[str, int, str, float]]:
    for rank, (item, score) in enumerate(zip(each.items, each.scores, strict=True), 1):
        yield each.query, rank, item, score


def _write(out: Path, ranked: Iterator[Ranked]) -> None:
    """Write it whole or not at all, as the ending says.

    Raises
    ------
    RuntimeError
        Where the file cannot be written.
    """
    try:
        if out.suffix == ".parquet":
            _write_parquet(out, ranked)
            return
        with created(out) as file:
            lines = _csv_lines if out.suffix == ".csv" else _json_lines
            file.writelines(line.encode() for line in lines(ranked))
    except OSError as error:
        raise RuntimeError(
            f"a file must be writable; {error.strerror}; at {out}"
        ) from error


def _json_lines(ranked: Iterator[Ranked]) -> Iterator[str]:
    for query, items, scores in ranked:
        # Valued as it is written, and not as lists drawn from these scores.
        line = {"query_id": query, "items": items, "scores": scores, "temperature": 0}
        yield msgspec.json.encode(line).decode() + "\n"


def _write_parquet(out: Path, ranked: Iterator[Ranked]) -> None:
    import pyarrow as pa  # noqa: PLC0415  for such files alone
    import pyarrow.parquet as pq  # noqa: PLC0415

    types = (pa.string(), pa.int32(), pa.string(), pa.float32())
    schema = pa.schema(list(zip(HEAD, types, strict=True)))
    with created(out) as file, pq.ParquetWriter(file, schema) as writer:
        rows: list[tuple[str, int, str, float]] = []
        for each in ranked:
            rows += _rows_of(each)
            if len(rows) >= ROWS_AT_ONCE:
                writer.write_table(_table(rows, schema))
                rows.clear()
        writer.write_table(_table(rows, schema))


def _table(rows: list[tuple[str, int, str, float]], schema: "pa.Schema") -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415

    named = [dict(zip(HEAD, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=schema)
