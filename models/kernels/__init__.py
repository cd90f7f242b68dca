"""How compiled code is made, and loops that several rooms share."""
