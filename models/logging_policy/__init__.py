"""Which lists to show so that a difference in clicks is soon known: LogOpt.

`policy_network` optimises the policy, `query_scores` that of a known query.
"""
