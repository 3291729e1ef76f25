"""Programs as source of the C family: C and OpenCL."""
