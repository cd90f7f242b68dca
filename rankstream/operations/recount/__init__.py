"""The independent recount, held against what a pipeline has stored."""
