"""How programs change: patterns, rules, compiled rule sets, drivers, traces and phases."""
