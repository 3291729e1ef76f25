"""What computes each operator of ATen, one file for each family; `table.py` collects them."""
