"""What a program is: dtypes, ops, nodes, shapes, bounds, specs and the text form."""
