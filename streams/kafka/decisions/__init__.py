"""Decisions on Kafka: their log, and how it is rewritten."""
