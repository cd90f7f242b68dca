"""The topic `statistics` as its readers see it: format, columns, and sums."""
