"""Curves of bias: fitted on what is counted, and known to trainings."""
