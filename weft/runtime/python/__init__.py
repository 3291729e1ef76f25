"""The interpreter as a device: memory is a bytearray, and graphs run in the oracle."""
