"""Two products that become one kernel: which, and on matrix units."""
