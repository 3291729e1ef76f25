"""Gradients and the transforms of functions: grad, jvp, vmap, checkpoint."""
