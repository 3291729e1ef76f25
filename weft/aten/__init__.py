"""Functions of torch itself that are neither methods of a tensor nor those of nn.functional.

`weft.__getattr__` looks here for names such as `weft.hann_window`. Many are functions of
`nn.functional` whose arguments come in another order at the top of torch, or whose reduction is a
number there.
"""
