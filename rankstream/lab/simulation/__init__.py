"""What `rankstream simulate` joins: queries, a ranker, and the learner behind it."""
