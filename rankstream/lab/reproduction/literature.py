"""What the literature printed, to be compared with.

References
----------
Oosterhuis, "Learning from User Interactions with Rankings" (2020), the tables of
offline and online performance in section 3.5; first printed in Oosterhuis & de
Rijke (CIKM 2018).
"""

from typing import NamedTuple

import numpy as np


class Published(NamedTuple):
    """Mean and standard deviation over 125 runs of 10,000 impressions."""

    offline: float
    offline_deviation: float
    online: float
    online_deviation: float


N_RUNS = 125

USERS = ("perfect", "navigational", "informational")

# Of each learner, by users: offline NDCG@10 and its deviation, online NDCG and its own.
_TABLES = {
    "MQ2007": """
    dbgd-linear 0.483 0.023 675.7 21.8 0.461 0.025 638.6 29.7 0.411 0.036 584.2 41.1
    dbgd-neural 0.463 0.025 602.7 58.1 0.430 0.033 573.7 68.4 0.383 0.047 550.8 75.7
    mgd-linear 0.494 0.022 689.6 15.3 0.426 0.020 635.9 14.7 0.406 0.021 618.8 21.7
    pairwise-linear 0.479 0.022 458.4 13.3 0.476 0.022 459.9 12.9 0.478 0.022 462.6 14.4
    pdgd-linear 0.511 0.017 797.3 17.3 0.496 0.019 703.0 17.9 0.487 0.021 704.8 30.5
    pdgd-neural 0.509 0.020 743.7 18.8 0.493 0.020 560.9 14.6 0.483 0.022 594.6 23.0
    """,
    "MQ2008": """
    dbgd-linear 0.683 0.024 843.6 40.8 0.670 0.025 816.9 42.0 0.631 0.036 757.4 56.9
    dbgd-neural 0.670 0.026 776.9 67.4 0.646 0.031 740.3 69.7 0.595 0.053 720.9 79.0
    mgd-linear 0.690 0.019 858.6 40.6 0.662 0.015 824.5 34.0 0.647 0.036 815.1 44.5
    pairwise-linear 0.674 0.017 616.6 25.8 0.677 0.018 618.6 25.2 0.677 0.018 619.6 25.0
    pdgd-linear 0.699 0.024 959.7 43.4 0.695 0.021 903.1 40.7 0.690 0.022 907.9 42.0
    pdgd-neural 0.698 0.024 925.4 43.3 0.692 0.019 788.7 38.5 0.686 0.022 818.3 39.6
    """,
    "MSLR-WEB10k": """
    dbgd-linear 0.331 0.010 533.6 15.6 0.319 0.011 508.2 21.6 0.299 0.017 477.2 32.2
    dbgd-neural 0.319 0.014 481.2 53.0 0.304 0.019 465.8 52.0 0.276 0.033 444.7 60.9
    mgd-linear 0.333 0.003 558.7 6.4 0.321 0.003 538.1 7.6 0.318 0.003 540.0 7.7
    pairwise-linear 0.315 0.003 345.3 4.6 0.312 0.003 347.3 5.4 0.311 0.003 349.7 6.6
    pdgd-linear 0.427 0.005 691.4 12.3 0.406 0.015 578.1 16.0 0.368 0.025 567.3 36.5
    pdgd-neural 0.430 0.006 619.2 13.6 0.386 0.019 448.1 12.3 0.355 0.021 470.1 19.4
    """,
    "Yahoo": """
    dbgd-linear 0.684 0.010 1159.3 31.6 0.661 0.023 1129.9 32.2 0.620 0.035 1110.0 37.0
    dbgd-neural 0.676 0.016 1135.7 41.3 0.649 0.029 1116.0 45.7 0.603 0.040 1091.2 48.6
    mgd-linear 0.714 0.002 1203.9 9.9 0.706 0.009 1181.7 20.0 0.676 0.043 1159.1 40.0
    pairwise-linear 0.709 0.001 1027.2 9.2 0.696 0.004 1031.2 9.0 0.690 0.006 1034.1 9.0
    pdgd-linear 0.736 0.004 1360.3 10.8 0.725 0.005 1298.4 33.4 0.713 0.008 1266.7 50.0
    pdgd-neural 0.733 0.005 1319.6 10.1 0.722 0.006 1176.1 17.0 0.709 0.009 1178.1 22.8
    """,
    "istella": """
    dbgd-linear 0.448 0.014 589.9 19.2 0.401 0.015 538.2 29.0 0.360 0.028 436.8 57.4
    dbgd-neural 0.429 0.017 494.3 60.5 0.382 0.024 414.3 96.2 0.316 0.057 322.9 121.0
    mgd-linear 0.496 0.004 670.9 8.6 0.405 0.004 593.2 9.7 0.387 0.005 581.8 10.7
    pairwise-linear 0.252 0.002 64.5 2.1 0.209 0.002 72.6 2.2 0.183 0.001 77.0 2.4
    pdgd-linear 0.573 0.004 957.5 9.4 0.540 0.008 704.1 33.5 0.532 0.010 731.5 80.0
    pdgd-neural 0.575 0.006 834.0 22.2 0.532 0.011 390.2 35.1 0.525 0.012 484.3 64.8
    """,
}


def published_of(data_set: str) -> dict[tuple[str, str], Published]:
    """Cells by learner and users; none where the data set was not in the tables."""
    cells: dict[tuple[str, str], Published] = {}
    for line in _TABLES.get(data_set, "").split("\n"):
        if words := line.split():
            numbers = np.array(words[1:], np.float64).reshape(len(USERS), -1)
            for users, printed in zip(USERS, numbers.tolist(), strict=True):
                cells[words[0], users] = Published(*printed)
    return cells


DATA_SETS = tuple(_TABLES)
