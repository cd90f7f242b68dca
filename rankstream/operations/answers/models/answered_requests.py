"""What became of a request for a training, once somebody has answered it."""

from dataclasses import dataclass

from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.models.trainings import Trainings
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.training import RunRecord

FORGOTTEN = "why is not known any more, as another one was refused since"


@dataclass(frozen=True)
class Answered(Answer):
    """What became of a request: the run of a training, or why there is none.

    Parameters
    ----------
    request
        The one that was answered.
    run
        None where it was refused.
    said
        Why, in words.
    """

    request: str
    run: RunRecord | CurveRecord | None
    said: str = ""


class AnswerAwaited:
    """Looks for the answer to a request.

    Runs, refusals and positions name the request that they answer. A status does not
    do: it goes on as soon as the next training begins.

    The topic keeps the last request of a model, and a trainer answers that. So who asks
    before an earlier request was begun is answered for both.

    Parameters
    ----------
    name
        Of the model.
    request
        Its id.
    """

    def __init__(self, name: str, request: str) -> None:
        self._name = name
        self._own = request
        self._seen: list[str] = []

    @property
    def requests(self) -> list[str]:
        """Requests whose answer is one to this: itself, and those after it.

        A reader of committed records sees it only when no transaction before it is
        open: until then earlier requests are the last ones, or there are none.
        """
        if self._own not in self._seen:
            return [self._own]
        return self._seen[self._seen.index(self._own) :]

    def take(self, found: Trainings) -> Answered | None:
        """The answer, as soon as there is one."""
        for each in found.asked.get(self._name, []):
            if each not in self._seen:
                self._seen.append(each)
        answers = (self._to(each, found) for each in self.requests)
        return next((each for each in answers if each is not None), None)

    def _to(self, request: str, found: Trainings) -> Answered | None:
        for run in found.runs.values():
            if run.model == self._name and run.request == request:
                return Answered(request, run)
        for refusal in found.refused.get(self._name, []):
            if refusal.request == request:
                return Answered(request, None, refusal.said)
        position = found.positions.get(self._name)
        if position is not None and position.request == request:
            return Answered(request, None, FORGOTTEN)
        return None
