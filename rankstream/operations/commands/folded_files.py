"""Events in files, folded in process."""

import argparse

from producers.replay import Pace, replay
from producers.stop_signal import Stop
from rankstream.operations.commands.replay import recorded_events
from rankstream.operations.local_replay import LocalReplay
from rankstream.operations.terminal.progress_line import ProgressLine


def fold_events(
    arguments: argparse.Namespace,
    local: LocalReplay,
    stop: Stop,
    names: dict[bytes, list[str]] | None = None,
) -> bool:
    """Fold all of them, all windows at the end; whether it was not stopped before.

    Parameters
    ----------
    names
        Takes names of features by the hash of their list, where files have them.
    """
    with recorded_events(arguments, stop) as events:
        if events is None:
            return False
        if names is not None:
            names.update(events.names)
        local.pipeline.start()
        with ProgressLine("folding", total=events.n_events) as line:
            state = replay(
                events.events,
                local.pipeline,
                pace=Pace(None),
                stop=stop,
                on_look=lambda state: line.show(state.done),
            )
        if state.is_complete:
            local.pipeline.end()
            local.pipeline.flush()
        return state.is_complete
