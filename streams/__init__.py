"""The way of an event: Faust around pure folds."""
