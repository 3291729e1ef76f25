"""The functions of all operators, a module for each subject; the table imports them."""
