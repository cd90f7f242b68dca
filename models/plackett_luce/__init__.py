"""The Plackett-Luce model: placement probabilities, and lists drawn from it."""
