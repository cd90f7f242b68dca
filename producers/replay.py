"""A recorded log sent again: in order, at a chosen pace, resumable."""

import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from producers.event_sink import EventTooLarge
from producers.stop_signal import Stop
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS

LOOK_EVERY = 256
"""Events between two looks at the clock."""

SAVE_EVERY_S = 0.5


class Sink(Protocol):
    """Where events go: Kafka, or the pipeline in process."""

    def send(
        self,
        kind: str,
        value: bytes,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        """Take one input event."""

    def end(self) -> None:
        """Hear that nothing more comes."""


class TargetAhead(RuntimeError):
    """The target's time has passed the file's: its events would be late.

    Operator action: replay into a `--namespace` of its own.
    """


class ProgressMismatch(RuntimeError):
    """A replay cannot go on where another one stopped.

    Operator action: replay from the beginning, into a `--namespace` of its own.
    """


@dataclass
class Replayed:
    """What has happened so far; `done` counts events that were passed, from the first.

    `first_refused` says why the first of the refused ones was. `newest_click_ms` is the
    latest time of a click that was sent.
    """

    done: int = 0
    refused: int = 0
    first_refused: str = ""
    newest_click_ms: int | None = None
    is_complete: bool = False


class Pace:
    """Event time at a multiple of its own speed; None is as fast as it goes.

    An event of an earlier time than the last one waits for nothing.
    """

    def __init__(self, speed: float | None) -> None:
        if speed is not None and not speed > 0:
            raise ValueError(f"speed must be more than 0; got {speed}")
        self._speed = speed
        self._start: tuple[float, int] | None = None

    def due_in_s(self, at_ms: int) -> float:
        """Seconds until an event of this time is due; 0 where it is."""
        if self._speed is None:
            return 0.0
        if self._start is None:
            self._start = (time.monotonic(), at_ms)
        started_s, first_ms = self._start
        due_s = started_s + (at_ms - first_ms) / 1_000 / self._speed
        return max(0.0, due_s - time.monotonic())


def replay(
    events: Iterable[Event],
    sink: Sink,
    *,
    pace: Pace,
    stop: Stop,
    skip: int = 0,
    on_look: Callable[[Replayed], None] = lambda _: None,
) -> Replayed:
    """Pass events to the sink until all are passed, or the user stops.

    Parameters
    ----------
    skip
        How many of the first events were passed before.
    on_look
        Called now and then, and while waiting for the next event to be due.
    """
    state = Replayed(done=skip)
    for event in itertools.islice(events, skip, None):
        # What could not be adapted has no time of its own.
        while (
            not stop.asked
            and not event.refusal
            and (due_in_s := pace.due_in_s(event.at_ms))
        ):
            on_look(state)
            stop.wait(min(due_in_s, SAVE_EVERY_S))
        if stop.asked:
            return state
        try:
            if event.refusal:
                sink.send(event.kind, event.value, headers=event.headers)
            else:
                sink.send(event.kind, event.value)
                if event.kind == CLICKS:
                    state.newest_click_ms = max(event.at_ms, state.newest_click_ms or 0)
        except EventTooLarge as error:
            state.refused += 1
            state.first_refused = state.first_refused or f"event {state.done}: {error}"
        state.done += 1
        if state.done % LOOK_EVERY == 0:
            on_look(state)
    state.is_complete = True
    return state


def refuse_older(
    first_ms: int | None, reached_ms: int | None, *, namespace: str
) -> None:
    """Refuse where the target's time has passed the first event.

    Raises
    ------
    TargetAhead
        With both times.
    """
    if first_ms is None or reached_ms is None or first_ms >= reached_ms:
        return
    place = f"namespace {namespace!r}" if namespace else "the default namespace"
    raise TargetAhead(
        f"a replay must not begin before what the target has reached; it begins at "
        f"{utc(first_ms)}, {place} is at {utc(reached_ms)}: its events would be late. "
        "add --namespace NAME to the command, of a namespace of its own"
    )


def utc(at_ms: int) -> str:
    """A time as people read it."""
    seconds, ms = divmod(at_ms, 1_000)
    try:
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return f"{at_ms} ms"
    return f"{text}.{ms:03d} UTC"


class ProgressFile:
    """How far a replay came, on disk: survives a kill at any moment.

    Parameters
    ----------
    path
        Replaced as a whole at each save.
    identity
        What must be the same for a replay to go on; see `identity_of`.
    """

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path = path
        self._identity = identity
        self._saved: tuple[int, bool] | None = None
        self._saved_s = 0.0

    def load(self) -> tuple[int, bool]:
        """How many events were acknowledged, and whether these were all.

        Raises
        ------
        ProgressMismatch
            Where it is another replay's, or damaged.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            identity = content["identity"]
            count, is_complete = int(content["acknowledged"]), bool(content["complete"])
        except FileNotFoundError:
            return 0, False
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ProgressMismatch(
                f"a progress file must be readable; {error!r}; at {self.path}: "
                "delete it, "
                "and the replay begins anew"
            ) from error
        if identity != json.loads(json.dumps(self._identity)):
            changed = [
                name
                for name, value in self._identity.items()
                if identity.get(name) != json.loads(json.dumps(value))
            ]
            raise ProgressMismatch(
                "files, options and target must be those of the replay that stopped; "
                f"changed: {', '.join(changed) or 'something'}; at {self.path}"
            )
        return count, is_complete

    def save(self, acknowledged: int, *, is_complete: bool = False) -> None:
        """Write it down for good."""
        if self._saved == (acknowledged, is_complete):
            return
        self._saved = (acknowledged, is_complete)
        self._saved_s = time.monotonic()
        content = {
            "identity": self._identity,
            "acknowledged": acknowledged,
            "complete": is_complete,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".part")
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path)
        _sync_folder(self.path.parent)

    @property
    def is_due(self) -> bool:
        """Whether it is time to save again."""
        return time.monotonic() - self._saved_s >= SAVE_EVERY_S


def identity_of(
    files: Sequence[Path], *, options: dict[str, Any], target: str
) -> dict[str, Any]:
    """What makes a replay the same: files unchanged, same options, same target."""
    stats = [(str(file.resolve()), file.stat()) for file in files]
    return {
        "files": [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats],
        "options": options,
        "target": target,
    }


def progress_path(identity: dict[str, Any]) -> Path:
    """Where the progress of a replay lies: the user's state folder, by its inputs."""
    named = os.environ.get("XDG_STATE_HOME")
    folder = Path(named) if named else Path.home() / ".local" / "state"
    names = [each[0] for each in identity["files"]]
    digest = hashlib.blake2b(
        json.dumps([names, identity["target"]]).encode(), digest_size=8
    ).hexdigest()
    return folder / "rankstream" / f"replay-{digest}.json"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
