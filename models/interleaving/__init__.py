"""Lists of several rankers combined into one, and what its clicks say of them."""
