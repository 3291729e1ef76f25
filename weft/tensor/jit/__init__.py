"""`@jit`: functions traced once per signature, and replayed."""
