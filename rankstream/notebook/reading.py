"""`rankstream.read`: a log from where it lies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankstream.adapters.file_formats import AUTO
from rankstream.notebook.log import Log
from rankstream.notebook.sources import SCHEME, Cluster, Source, Table, Tables
from rankstream.operations.named_log import is_role, roles_of_part
from rankstream.settings import Settings, load_settings
from rankstream.wire.nearest_name import meant


def read(  # noqa: PLR0913  all that may be said of a log
    source: Table,
    *,
    clicks: Table = None,
    features: Table = None,
    format: str = AUTO,  # noqa: A002  as the command has it
    columns: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    session_join: bool = False,
    settings: Settings | Path | str | None = None,
    progress: bool = True,
) -> Log:
    """Read a log and count it, as workers would.

    Parameters
    ----------
    source
        A DataFrame of any library with Arrow's interface (pandas 2.2, polars 1,
        pyarrow), a file or folder or a list of them, or `kafka://HOST:PORT/NAMESPACE`
        for the log `events` of a cluster. A table has a row for each shown item, with
        columns `impression`, `item` and, where they are known, `query`, `at`,
        `position`, `clicked`, `user`, `session`; or a row for each list, with the items
        of it as a list in the column `items`.
    clicks
        A table of clicks alone, or files of them, where they lie apart: `impression`
        and `item` or `position`, with `at`.
    features
        A table of features, or files of it: a row for each `item`, or for each `query`
        and `item`, and a column of numbers for each feature. Rankers need it.
    format
        Of files; `auto` looks at them. `docs/events.md` has all.
    columns
        The column of a role, such as `{"item": "sku"}`; of one of two tables
        `{"clicks.item": "sku"}`.
    options
        Of a format, such as `{"time_unit": "s"}`; `docs/adapters.md` has all.
    session_join
        Whether clicks find their lists by session, query and time.
    settings
        Those of the pipeline, or their file; None: of `RANKSTREAM_CONFIG`, or none.
    progress
        Whether it says how far it is where it takes more than some seconds.

    Returns
    -------
    What was counted. What became of each event stands in its `outcomes`.

    Raises
    ------
    ValueError
        Where a column is missing, with the nearest name, or a file is not what it must
        be; where something of files is given beside a cluster.
    RuntimeError
        Where a cluster does not answer, or has no such log.
    """
    for name in columns or {}:
        if not is_role(name):
            roles = roles_of_part(name)
            raise ValueError(
                f"columns must name roles, of {', '.join(roles)}; got {name!r:.60}: "
                f"{meant(name.rpartition('.')[2], roles)}"
            )
    if isinstance(settings, Settings):
        known = settings
    else:
        known = load_settings(None if settings is None else Path(settings))
    found: Source
    if isinstance(source, str) and source.startswith(SCHEME):
        given = {
            "clicks": clicks is not None,
            "format": format != AUTO,
            "columns": bool(columns),
            "options": bool(options),
            "session_join": session_join,
        }
        of_files = [name for name, is_given in given.items() if is_given]
        if of_files:
            raise ValueError(
                f"{', '.join(of_files)} must be given with tables or files alone; a "
                f"log in Kafka has its form: leave out what is beside {SCHEME}"
            )
        found = Cluster(source)
    else:
        found = Tables(
            source, clicks, format, columns or {}, options or {}, session_join
        )
    return Log(found, known, features=features, progress=progress)
