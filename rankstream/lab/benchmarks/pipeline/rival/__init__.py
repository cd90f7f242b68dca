"""The rival of the pipeline: an application of Kafka Streams, as its users write it."""
