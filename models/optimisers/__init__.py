"""How a step follows from a gradient, apart from where the gradient comes from."""
