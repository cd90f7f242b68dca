"""Evidence of a difference between two policies, as sums over the lists that came.

Let lambda_j(d) be the weight of item d under policy j, and rho(d) how often the policy
that logged a list lets item d be examined. Of a list with clicks c,

    X = sum over d of c(d) w(d),    w(d) = (lambda_1(d) - lambda_2(d)) / rho(d),

has the difference of both policies' rewards as its mean. The rho must be that of the
list's own policy: were lists of several pooled, then what was decided after some of
them would make pooled propensities, and so the difference, biased.

References
----------
Oosterhuis (thesis, 2020), chapter 8, sections 8.3.2 and 8.7.3; Oosterhuis & de Rijke
(WWW 2021).
"""

from typing import NamedTuple

from models.arrays import Floats, Integers


class DifferenceSums(NamedTuple):
    """Sums of X. A row is a group of sessions under one logging policy.

    Rows of one comparison stand together; where there are several comparisons,
    `starts` [n_comparisons + 1] tells where the rows of each begin.

    Parameters
    ----------
    groups : [n_rows]
        Group of sessions.
    interactions : [n_rows]
        Lists.
    lengths : [n_rows]
        Items that a list shows, K.
    clicks : [n_rows]
    gains : [n_rows]
        M+, the most that X can be: the sum of the K largest w that are above 0.
    losses : [n_rows]
        M-, the most that -X can be, at least 0.
    largest : [n_rows]
        Largest |w| of an item that can be shown.
    totals, squares : [n_rows]
        Sums of X and of X^2.
    click_squares : [n_rows]
        Sum over clicks of w^2.
    """

    groups: Integers
    interactions: Integers
    lengths: Integers
    clicks: Integers
    gains: Floats
    losses: Floats
    largest: Floats
    totals: Floats
    squares: Floats
    click_squares: Floats
