"""A worker as several processes: started, supervised, and how they end."""
