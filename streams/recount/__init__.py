"""An independent recount of the canonical log: own code, plain and slow."""
