"""What comparisons of rankers come to, and what warns of them."""
