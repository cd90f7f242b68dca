"""Benchmarks: each module measures figures beside a named rival in the same run."""
