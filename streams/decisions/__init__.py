"""What is served for which query, decided from statistics.

`decide` decides, by the rule of `models.decisions.meta_policy`.
"""
