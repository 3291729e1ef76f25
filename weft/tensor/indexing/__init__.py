"""Elements by index: views, gathers, scatters, sorting, counting."""
