"""Python functions made into graph: `@function`, custom kernels, scans."""
