"""Joins schedule, codegen, render and runtime: realize, compile, run."""
