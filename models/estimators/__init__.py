"""What sums of logged clicks say of relevance, whatever policies showed the items."""
