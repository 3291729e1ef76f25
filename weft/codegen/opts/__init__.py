"""Opts: the schedule of a kernel as data, and the rewrite behind each."""
