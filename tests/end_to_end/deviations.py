"""Where Weft answers otherwise than PyTorch, as data: both calls, both answers, and the reason.

`test_deviations.py` makes both calls, so that a row that is not true any more fails;
`docs/reference/deviations.md` is printed from here. An answer is what `answer` makes of a result.
"""

from typing import Any, NamedTuple


class Deviation(NamedTuple):
    """Two calls, written as Python, and what they give."""

    subject: str
    ours: str
    our_answer: str
    theirs: str
    their_answer: str
    reason: str


def answer(result: Any) -> str:
    """A result in words: its elements and dtype, its names, or that it was refused."""
    if isinstance(result, Exception):
        return "refused"
    if hasattr(result, "tolist"):
        dtype = str(result.dtype).rpartition(".")[2]
        return f"{result.tolist()!r} {dtype}"
    return repr(result)


DEVIATIONS = (
    Deviation(
        "dtype of Python ints",
        "Tensor([2]).dtype.name",
        "'int32'",
        "str(torch.tensor([2]).dtype)",
        "'torch.int64'",
        "Indices of 32 bits are twice as fast on every device; WEFT_DEFAULT_INT changes it.",
    ),
    Deviation(
        "promotion of a tensor without axes",
        "Tensor([1.0]) + Tensor(2.0, dtype='float64')",
        "[3.0] float64",
        "torch.tensor([1.0]) + torch.tensor(2.0, dtype=torch.float64)",
        "[3.0] float32",
        "A dtype follows from dtypes alone, as in NumPy 2; Python scalars are weak in both.",
    ),
    Deviation(
        "max along an axis",
        "Tensor([[1, 2]]).max(1)",
        "[2] int32",
        "torch.tensor([[1, 2]]).max(1)[1]",
        "[1] int64",
        "PyTorch returns values and indices. Here max gives values, as amax and tinygrad do, "
        "and argmax gives indices.",
    ),
    Deviation(
        "mean of integers",
        "Tensor([1, 2]).mean()",
        "1.5 float32",
        "torch.tensor([1, 2]).mean()",
        "refused",
        "The average of integers is well defined; var and std are computed too.",
    ),
    Deviation(
        "any and all of uint8",
        "Tensor([1], dtype='uint8').all()",
        "True bool",
        "torch.tensor([1], dtype=torch.uint8).all()",
        "1 uint8",
        "PyTorch keeps a rule from before it had bools.",
    ),
    Deviation(
        "index out of range in a tensor",
        "Tensor([1, 2])[Tensor([2]) + 3]",
        "[0] int32",
        "torch.tensor([1, 2])[torch.tensor([2]) + 3]",
        "refused",
        "What a computed index holds is not known when the graph is built. Numbers that the host "
        "knows, in lists, arrays and small tensors of a CPU, are checked; CHECK=index checks all.",
    ),
    Deviation(
        "integer division by zero",
        "Tensor([7]) // 0",
        "[0] int32",
        "torch.tensor([7]) // 0",
        "refused",
        "A kernel cannot raise; the op is defined as 0 there.",
    ),
    Deviation(
        "cast of what an integer cannot hold",
        "Tensor([math.nan, 1e20]).int()",
        "[0, 2147483647] int32",
        "torch.tensor([math.nan, 1e20]).int()",
        "[-2147483648, -2147483648] int32",
        "PyTorch gives what the machine gives. Here every device saturates, and NaN is 0.",
    ),
    Deviation(
        "relu of -0.0",
        "Tensor([-0.0]).relu()",
        "[0.0] float32",
        "torch.tensor([-0.0]).relu()",
        "[-0.0] float32",
        "relu is a choice whose slope at 0 is 0; to keep the sign would cost a second choice.",
    ),
    Deviation(
        "maximum of 0.0 and -0.0",
        "Tensor([0.0]).maximum(Tensor([-0.0])) == 0",
        "[True] bool",
        "torch.tensor([0.0]).maximum(torch.tensor([-0.0]))",
        "[0.0] float32",
        "They are equal; which of them a machine returns is its own choice, here and there.",
    ),
    Deviation(
        "sum of one -0.0",
        "Tensor([-0.0]).sum()",
        "-0.0 float32",
        "torch.tensor([-0.0]).sum()",
        "0.0 float32",
        "A sum of one term is that term.",
    ),
    Deviation(
        "remainder of a multiple",
        "Tensor([-3.0]).remainder(3.0)",
        "[0.0] float32",
        "torch.tensor([-3.0]).remainder(3.0)",
        "[-0.0] float32",
        "The result has the sign of the divisor, zero included, as in Python.",
    ),
    Deviation(
        "gelu without an argument",
        "Tensor([1.0]).gelu()",
        "[0.8411920070648193] float32",
        "torch.nn.functional.gelu(torch.tensor([1.0]))",
        "[0.8413447141647339] float32",
        'The default is the tanh formula, as in tinygrad; approximate="none" is PyTorch\'s.',
    ),
    Deviation(
        "sinc of an integer",
        "Tensor([1.0]).sinc().abs()",
        "[0.0] float32",
        "torch.tensor([1.0]).sinc()",
        "[-2.7827534054836178e-08] float32",
        "x is reduced before it is multiplied by π, so the result is exact.",
    ),
    Deviation(
        "arrays made by numpy()",
        "Tensor([1.0]).numpy().flags.writeable",
        "False",
        "torch.tensor([1.0]).numpy().flags.writeable",
        "True",
        "The array shows memory that lazy values may still be computed from. np.array(x) is a "
        "copy; Tensor.from_numpy shares memory both ways.",
    ),
    Deviation(
        "a write through an array",
        "copies(Tensor)",
        "[1.0, 2.0] float32",
        "copies(torch.from_numpy)",
        "[9.0, 2.0] float32",
        "Tensor(array) copies, so that a lazy value never changes; from_numpy shares.",
    ),
    Deviation(
        "reshape of a transposed tensor",
        "reshaped(Tensor([[1, 2], [3, 4]]))",
        "[[1, 9], [3, 4]] int32",
        "reshaped(torch.tensor([[1, 2], [3, 4]]))",
        "[[1, 2], [3, 4]] int64",
        "Every reshape is a view here; PyTorch copies where strides cannot say it.",
    ),
    Deviation(
        "masked_scatter of too few elements",
        "Tensor([1, 2]).masked_scatter(Tensor([True, True]), Tensor([5]))",
        "[5, 0] int32",
        "torch.tensor([1, 2]).masked_scatter(torch.tensor([True, True]), torch.tensor([5]))",
        "refused",
        "How many elements a mask takes is not known when the graph is built.",
    ),
    Deviation(
        "dropout outside of training",
        "Tensor([1.0]).dropout(1.0)",
        "[1.0] float32",
        "torch.nn.functional.dropout(torch.tensor([1.0]), 1.0)",
        "[0.0] float32",
        "Tensor.training says whether dropout drops; it is False at first, as in tinygrad.",
    ),
    Deviation(
        "a computed value that is written in no_grad",
        "unrecorded(Tensor([1.0]))",
        "[1.0] float32",
        "unrecorded(torch.tensor([1.0]))",
        "[3.0] float32",
        "What is written there is a constant: PyTorch goes on to what the old value came from.",
    ),
    Deviation(
        "batch norm by itself",
        "normalized(Tensor([[1.0], [3.0]]))",
        "[[1.0], [3.0]] float32",
        "normalized(torch.tensor([[1.0], [3.0]]))",
        "[[-1.0], [1.0]] float32",
        "A layer that tinygrad has too follows Tensor.training until train() or eval() is called, "
        "or a module around it runs; modules train at first, as in PyTorch.",
    ),
    Deviation(
        "numbers of a batch of Python floats",
        "default_collate([1.0, 2.0])",
        "[1.0, 2.0] float32",
        "torch.utils.data.default_collate([1.0, 2.0])",
        "[1.0, 2.0] float64",
        "A Python float has the default dtype here, wherever it becomes a tensor.",
    ),
    Deviation(
        "slope of max along an axis, of equal elements",
        "slope(lambda x: x.max(0), Tensor([2.0, 2.0]))",
        "[0.5, 0.5] float32",
        "slope(lambda x: x.max(0).values, torch.tensor([2.0, 2.0]))",
        "[1.0, 0.0] float32",
        "Equal elements share the slope, as those of amax do in both, and in tinygrad.",
    ),
    Deviation(
        "slope of topk and kthvalue, of equal elements",
        "slope(lambda x: x.kthvalue(1)[0], Tensor([0.0, 0.0, 2.0]))",
        "[1.0, 0.0, 0.0] float32",
        "slope(lambda x: x.kthvalue(1)[0], torch.tensor([0.0, 0.0, 2.0]))",
        "[0.0, 1.0, 0.0] float32",
        "Sorting is stable, so the first of equal elements is taken; PyTorch takes any.",
    ),
    Deviation(
        "slope of binary_cross_entropy at p = 1",
        "slope(lambda x: x.binary_cross_entropy(Tensor([0.0])), Tensor([1.0]))",
        "[0.0] float32",
        "slope(lambda x: torch.nn.functional.binary_cross_entropy(x, torch.zeros(1)), "
        "torch.tensor([1.0]))",
        "[999999995904.0] float32",
        "The slope of a sigmoid is exact here, above 0 where its value rounds to 1. After a "
        "sigmoid both are 0.",
    ),
    Deviation(
        "slope of kl_div in a target of 0",
        "slope(lambda y: Tensor([-1.0]).kl_div(y, reduction='sum'), Tensor([0.0]))",
        "[1.0] float32",
        "slope(lambda y: torch.nn.functional.kl_div(torch.tensor([-1.0]), y, reduction='sum'), "
        "torch.tensor([0.0]))",
        "[nan] float32",
        "y log y is 0 at 0 by definition; its slope is left out there.",
    ),
    Deviation(
        "slope of hypot at 0, 0",
        "slope(lambda x: x.hypot(Tensor([0.0])), Tensor([0.0]))",
        "[0.0] float32",
        "slope(lambda x: x.hypot(torch.zeros(1)), torch.tensor([0.0]))",
        "[nan] float32",
        "A norm has the slope 0 at 0 in both; this one is a norm.",
    ),
    Deviation(
        "fp8e4m3 of a number that is too large",
        "Tensor([1000.0]).cast('fp8e4m3').float()",
        "[nan] float32",
        "torch.tensor([1000.0]).to(torch.float8_e4m3fn).float()",
        "[448.0] float32",
        "The format has no infinity, and a NaN shows that something overflowed; ml_dtypes and "
        "JAX do the same. clamp(-448, 448) first saturates.",
    ),
    Deviation(
        "numbers that do not fit beside a tensor of int32",
        "Tensor([1]) + 2**35",
        "refused",
        "(torch.tensor([1], dtype=torch.int32) + 2**35).tolist()",
        "[1]",
        "PyTorch drops the upper bits in silence.",
    ),
    Deviation(
        "storage_offset and stride of a view",
        "Tensor([1, 2, 3])[1:].storage_offset()",
        "0",
        "torch.tensor([1, 2, 3])[1:].storage_offset()",
        "1",
        "Memory has no layout that shows: elements are described one behind the other.",
    ),
    Deviation(
        "resampling a gamma distribution",
        "weft.distributions.Gamma(1.0, 1.0).has_rsample",
        "False",
        "torch.distributions.Gamma(1.0, 1.0).has_rsample",
        "True",
        "Draws of gamma, beta, Dirichlet, Wishart and of what is made of them have no gradient; "
        "log_prob has one.",
    ),
    Deviation(
        "parameters of a lazy layer before its first input",
        "list(weft.nn.LazyLinear(2).parameters())",
        "refused",
        "len(list(torch.nn.LazyLinear(2).parameters()))",
        "2",
        "They have no shape yet. An optimizer that is made too early says so at once.",
    ),
    Deviation(
        "frombuffer",
        "copies(lambda a: weft.frombuffer(a, dtype=weft.float32))",
        "[1.0, 2.0] float32",
        "copies(lambda a: torch.frombuffer(a, dtype=torch.float32))",
        "[9.0, 2.0] float32",
        "The bytes are copied, so a later write to the buffer does not show.",
    ),
)
