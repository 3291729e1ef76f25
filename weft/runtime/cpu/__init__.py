"""The CPU as a device: machine code by LLVM, memory of this process, a native thread pool."""
