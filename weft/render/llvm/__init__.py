"""Programs as LLVM IR, for CPUs and for PTX."""
