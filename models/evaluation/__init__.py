"""What preferences of many impressions add up to, and what may be concluded."""
