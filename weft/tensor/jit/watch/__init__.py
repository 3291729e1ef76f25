"""What a function reads of Python while it is traced, and the check that it is as it was."""
