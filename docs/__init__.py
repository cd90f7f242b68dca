"""Pages, and what makes a site of them: `python -m docs`."""
