"""Online learning to rank, reproduced: learners that live with their users."""
