"""How values lie in memory that matrix units read."""
