"""Other systems' topics: how they are read, and what is written of them."""
