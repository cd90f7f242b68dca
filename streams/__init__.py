"""The stages of the pipeline: pure folds, and what runs them on Kafka."""
