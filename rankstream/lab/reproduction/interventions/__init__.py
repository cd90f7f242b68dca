"""Learning with interventions, reproduced: estimators, policies and online learners."""
