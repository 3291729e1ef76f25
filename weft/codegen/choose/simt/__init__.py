"""Which opts a kernel of threads gets."""
