"""What is known of a kernel: loops, accesses, contractions, cost."""
