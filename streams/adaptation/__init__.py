"""Documents of other systems' topics as input events: pure, no Kafka, no clock."""
