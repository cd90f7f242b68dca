"""Which lists to log for a comparison of two rankers, as in chapter 9."""
