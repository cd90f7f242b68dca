"""Files of events judged offline: all that ingestion and the join would refuse."""
