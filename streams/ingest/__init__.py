"""Ingestion: events of the input topics, validated, into the canonical log."""
