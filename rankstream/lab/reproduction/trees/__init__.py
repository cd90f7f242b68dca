"""The table of trees: what they learn from clicks, beside linear rankers."""
