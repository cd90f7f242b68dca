"""Which policy is served for which query, on what evidence (chapter 8)."""
