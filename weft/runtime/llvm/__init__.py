"""LLVM, through llvmlite: the compiler that the CPU and NVIDIA GPUs share."""
