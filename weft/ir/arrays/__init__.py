"""Values of every dtype in NumPy arrays, as the interpreters have them."""
