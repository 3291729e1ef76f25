"""What the engine says of its work: names of kernels, lines of the terminal, records of traces."""
