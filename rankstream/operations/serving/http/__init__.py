"""HTTP from whoever comes: connections, heads and bodies, within limits."""
