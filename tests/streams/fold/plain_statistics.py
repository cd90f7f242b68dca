"""The statistics in plain dictionaries, as their definitions say, for tests."""

from collections import Counter, defaultdict
from itertools import combinations

import msgspec
import numpy as np

from models.plackett_luce.placement import placement_batch
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
)
from rankstream.wire.exposures import unpack_exposures

OPEN_SET, OVERFLOW_SET = bytes(16), b"\xff" * 16
PAIR_COUNTS = ("shown", "clicked", "first_click", "shown_to_first", "shown_to_last")

_decode = msgspec.msgpack.Decoder().decode


class PlainStatistics:
    """The definitions, spelled out.

    `scopes` holds the impressions of each: by query, candidate set (its items, or the
    name of one that grows), intervention, era. All else follows from them.
    """

    def __init__(self, limits, statistics, keep_ms):
        self.limits, self.statistics, self.keep_ms = limits, statistics, keep_ms
        self.scopes = {}
        self.watermark_ms: int | None = None
        self.totals: Counter[str] = Counter()

    def take(self, step):
        """A closed impression, or the watermark after all that it closed."""
        if isinstance(step, int):
            self.advance(step)
        else:
            place = self.place_of(step.impression)
            self.scopes.setdefault(place, []).append(step)
            self.totals["interactions"] += 1
            self.totals["capped"] += place[1] == OVERFLOW_SET
            one = self.cell_of(place, [step], {row_of(step.impression)})
            for name in ("clipped", "without_exposure"):
                self.totals[name] += one["totals"][name]

    def advance(self, watermark_ms):
        """Scopes of an era leave together, `keep_ms` after its end."""
        if self.watermark_ms is not None:
            watermark_ms = max(self.watermark_ms, watermark_ms)
        self.watermark_ms = watermark_ms
        for place in list(self.scopes):
            if watermark_ms >= (place[3] + 2) * self.keep_ms:
                self.totals["n_left"] += len(self.scopes.pop(place))

    def place_of(self, impression):
        """The scope of an impression, or the capped one where it is full."""
        query, chosen = impression.query_id, impression.intervention
        era = impression.at_ms // self.keep_ms
        name: object = tuple(_decode(impression.candidates))
        if impression.is_open_set:
            name = OPEN_SET
        if (query, name, chosen, era) in self.scopes:
            return (query, name, chosen, era)
        others = {key[1:3] for key in self.scopes if (key[0], key[3]) == (query, era)}
        others = {pair for pair in others if pair[0] != OVERFLOW_SET}
        names, interventions = {n for n, _ in others}, {i for _, i in others}
        if (name not in names and len(names) >= self.limits.candidate_sets) or (
            chosen not in interventions
            and len(interventions) >= self.limits.interventions
        ):
            return (query, OVERFLOW_SET, "", era)
        return (query, name, chosen, era)

    def rows_of(self, place):
        """The exposure rows that a scope keeps: the first that came."""
        if place[1] == OVERFLOW_SET:
            return []
        rows = dict.fromkeys(row_of(each.impression) for each in self.scopes[place])
        rows.pop(None, None)
        return list(rows)[: self.limits.exposure_rows]

    def group_of(self, interaction):
        """Which group of users an impression belongs to."""
        return interaction.impression.unit % self.statistics.groups

    def ranks_of(self, interaction):
        """Ranks by class: each rank that an action of the class was at, once."""
        actions, classes = self.statistics.actions, self.statistics.classes()
        ranks: dict[int, set[int]] = {n: set() for n in range(len(classes))}
        for mark in interaction.clicks:
            number = classes.index(actions.get(mark.action, "click"))
            ranks[number].add(mark.position)
        return ranks

    def clicked(self, interaction):
        """Ranks that the reward was at."""
        reward = self.statistics.classes().index(self.statistics.reward)
        return self.ranks_of(interaction)[reward]

    def cells(self):
        """What each group of each scope counted, both forms together."""
        found = {}
        for place, interactions in self.scopes.items():
            groups, rows = defaultdict(list), self.rows_of(place)
            for one in interactions:
                groups[self.group_of(one)].append(one)
            for group, of_group in groups.items():
                found[*place, group] = self.cell_of(place, of_group, rows)
        return found

    def cell_of(self, place, interactions, rows):
        """The sums of some impressions of a scope that keeps these rows."""
        cell = {
            "totals": Counter(),
            "pairs": defaultdict(Counter),
            "sums": defaultdict(Counter),
            "click_pairs": Counter(),
            "rows": Counter(),
            "rewards": Counter(),
        }
        for one in interactions:
            shown, clicked = shown_of(one.impression), self.clicked(one)
            count_lists(cell, shown, clicked)
            if place[1] != OVERFLOW_SET:
                self.count_rewards(cell, one, shown)
                count_preferences(cell, shown, clicked)
                count_exposures(cell, one.impression, clicked, rows)
        return cell

    def count_rewards(self, cell, interaction, shown):
        """Ranks of the classes that are not the reward."""
        reward = self.statistics.classes().index(self.statistics.reward)
        for number, ranks in self.ranks_of(interaction).items():
            if number != reward:
                for rank in ranks:
                    cell["rewards"][number, shown[rank - 1], rank] += 1


def count_lists(cell, shown, clicked):
    """Totals and pairs."""
    totals = cell["totals"]
    totals["impressions"] += 1
    totals["without_click"] += not clicked
    totals["clicks"] += len(clicked)
    totals["clicks_squared"] += len(clicked) ** 2
    first, last = min(clicked, default=0), max(clicked, default=0)
    for rank, item in enumerate(shown, 1):
        pair = cell["pairs"][item, rank]
        pair["shown"] += 1
        pair["clicked"] += rank in clicked
        pair["first_click"] += rank == first
        pair["shown_to_first"] += not clicked or rank <= first
        pair["shown_to_last"] += bool(clicked) and rank <= last


def count_preferences(cell, shown, clicked):
    """Clicked above and below what was not, and clicked together."""
    last = max(clicked, default=0)
    for rank, item in enumerate(shown[:last], 1):
        if rank in clicked:
            cell["sums"][item]["plus"] += last - len(clicked)
        else:
            cell["sums"][item]["minus"] += len(clicked)
    for a, b in combinations(sorted((shown[r - 1], r) for r in clicked), 2):
        cell["click_pairs"][(*a, *b)] += 1


def count_exposures(cell, impression, clicked, kept):
    """Inverse probabilities; exposures by row where it is kept, else summed."""
    matrix = placement(impression)
    if matrix is None:
        cell["totals"]["without_exposure"] += 1
        return
    items, shown = _decode(impression.candidates), shown_of(impression)
    for rank in clicked:
        p = float(matrix[items.index(shown[rank - 1]), rank - 1])
        if impression.policy == PLACKETT_LUCE:
            # Whatever was shown had some chance, computed or not.
            p = max(p, 2**-21)
        if p > 0:
            cell["totals"]["clipped"] += p < 2**-20
            p = max(p, 2**-20)
            cell["sums"][shown[rank - 1]]["inverse"] += round(2**16 / p)
            cell["sums"][shown[rank - 1]]["squared"] += round(2**16 / (p * p))
    row = row_of(impression)
    if row in kept and row is not None:
        cell["rows"][row] += 1
        return
    for (item, rank), p in np.ndenumerate(matrix):
        if p > 0:
            cell["pairs"][items[item], rank + 1]["exposure"] += round(float(p) * 2**30)


def shown_of(impression):
    """Items at ranks 1, 2, ..."""
    items = _decode(impression.candidates)
    return [items[row] for row in np.frombuffer(impression.shown, "<u2").tolist()]


def row_of(impression):
    """Policy, length, material and, of an open set, candidates; None without a row."""
    if impression.policy not in (LOGGED, PLACKETT_LUCE):
        return None
    is_logged = impression.policy == LOGGED
    material = impression.exposures if is_logged else impression.scores
    owner = bytes(impression.candidates) if impression.is_open_set else b""
    return (impression.policy, len(impression.shown) // 2, bytes(material), owner)


def placement(impression):
    """P(item at rank) under the impression's policy, None where it has none."""
    n = len(_decode(impression.candidates))
    rows = np.frombuffer(impression.shown, "<u2").tolist()
    matrix: np.ndarray = np.zeros((n, len(rows)))
    if impression.policy == DETERMINISTIC:
        matrix[rows, range(len(rows))] = 1
    elif impression.policy == TAIL_SHUFFLE:
        matrix[:, -1] = 1 / (n - len(rows) + 1)
        matrix[rows[:-1]] = 0
        matrix[rows[:-1], range(len(rows) - 1)] = 1
    elif impression.policy == PLACKETT_LUCE:
        scores = np.frombuffer(impression.scores, "<f4").astype(np.float64)
        matrix = placement_batch(scores[None], len(rows))[0]
    elif impression.policy == LOGGED:
        matrix = unpack_exposures(impression.exposures, n, len(rows))
    else:
        return None
    return matrix


def comparable(cell):
    """A cell without what is zero, so that equal counts are equal."""
    return {
        part: {
            key: counts
            for key, counts in (
                (k, {n: c for n, c in v.items() if c} if isinstance(v, Counter) else v)
                for k, v in of_part.items()
            )
            if counts
        }
        for part, of_part in cell.items()
    }


def applied(state, changes):
    """The topic after more changes, compacted."""
    for topic, key, value in changes:
        assert topic == "statistics"
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
    return state


def state_of(fold):
    """All that a fold that never wrote before stands for."""
    return applied({}, fold.changes({}))
