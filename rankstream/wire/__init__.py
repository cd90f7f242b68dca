"""What crosses a topic: events, envelopes, routes, and how large they may be."""
