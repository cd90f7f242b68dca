"""What people see in a terminal while they wait, and numbers as they say them."""
