"""Every op of a tensor, as data. `test_ops.py` runs the rows on every device.

A row's name begins with the methods it covers, so a method without a row is found.
"""

from tests.end_to_end.op_row import Row
from tests.end_to_end.op_rows_arrangement import ARRANGEMENT, POOLS, SELECTION
from tests.end_to_end.op_rows_elementwise import ACTIVATIONS, BINARY, UNARY
from tests.end_to_end.op_rows_folds import LOSSES, PRODUCTS, REDUCTIONS
from tests.end_to_end.op_rows_functional import FUNCTIONAL, SPELLINGS
from tests.end_to_end.op_rows_functions import ALIASES, IN_PLACE, OPERANDS, SPECIAL
from tests.end_to_end.op_rows_linalg import DECOMPOSITIONS, PRODUCTS_OF_MATRICES, TRANSFORMS
from tests.end_to_end.op_rows_order import COUNTING, SCANS, SORTING
from tests.end_to_end.op_rows_shapes import CREATION, INDEXING, MOVEMENT, casts

FAMILIES: dict[str, tuple[Row, ...]] = {
    "unary": UNARY,
    "activations": ACTIVATIONS,
    "binary": BINARY,
    "special": SPECIAL,
    "operands": OPERANDS,
    "aliases": ALIASES,
    "in place": IN_PLACE,
    "casts": casts(),
    "movement": MOVEMENT,
    "arrangement": ARRANGEMENT,
    "indexing": INDEXING,
    "selection": SELECTION,
    "pools": POOLS,
    "reductions": REDUCTIONS,
    "scans": SCANS,
    "sorting": SORTING,
    "counting": COUNTING,
    "products": PRODUCTS,
    "products of matrices": PRODUCTS_OF_MATRICES,
    "decompositions": DECOMPOSITIONS,
    "transforms": TRANSFORMS,
    "losses": LOSSES,
    "functional": FUNCTIONAL,
    "spellings": SPELLINGS,
    "creation": CREATION,
}

# Loops of hundreds of kernels, of ops that other rows run on every device: on the CPU alone.
LOOPS = frozenset(("decompositions",))

# Methods without a row, by the reason.
NOT_IN_THE_TABLE = {
    "no number comes out": (
        "data device dtype element_size from_blob from_dlpack from_numpy grad "
        "cpu cuda dim is_contiguous is_floating_point item nbytes ndim nelement numel numpy "
        "to_torch "
        "realize replace requires_grad requires_grad_ shape size to_ tolist train training uop"
    ),
    "called by every row with a gradient": "backward gradient detach",
    "random or unset memory, tested in tests/unit/tensor": (
        "dropout empty empty_like glorot_uniform kaiming_normal kaiming_uniform manual_seed "
        "multinomial new_empty normal normal_ rand rand_like randint randn randn_like randperm "
        "scaled_uniform uniform uniform_"
    ),
    "on several devices, tested in tests/unit/tensor/test_shard.py": "shard shard_ shard_like",
    "a Python bool": "allclose equal",
}
