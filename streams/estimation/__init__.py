"""What policies would be worth, from statistics: gathering, targets, rewards."""
