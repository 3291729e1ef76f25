"""What to write instead of names that other frameworks have and Weft does not.

`Core` asks here when an attribute is not found, before it looks for a name that is spelled alike.
"""

from __future__ import annotations

from typing import Final

_NO_RECORD: Final = "nothing is recorded: gradients are found when backward() or gradient() asks"
_DENSE: Final = ("all tensors are dense", "write x with its zeros, or x.nonzero() for indices")
_QUANTIZED: Final = ("a tensor has numbers of one dtype", "write (x / scale).round().cast('int8')")
_ONE_RESULT: Final = "max(dim) and min(dim) have values and indices, and no other tensor has"

# By name: what is so here, and what to write.
_TENSOR: Final = {
    "no_grad": (_NO_RECORD, "write weft.no_grad(), or x.detach() where a gradient must not flow"),
    "enable_grad": (_NO_RECORD, "write weft.enable_grad()"),
    "inference_mode": (_NO_RECORD, "write weft.inference_mode()"),
    "set_grad_enabled": (_NO_RECORD, "write weft.set_grad_enabled(...)"),
    "test": ("Tensor.training is a switch", "write Tensor.train(False)"),
    "autograd": ("gradients are methods", "write loss.gradient(x, y) or loss.backward()"),
    "values": (_ONE_RESULT, "write x.max(dim).values"),
    "indices": (_ONE_RESULT, "write x.max(dim).indices"),
    "tensor": ("a tensor is made by its class", "write weft.tensor(data) or Tensor(data)"),
    "as_tensor": ("a tensor is made by its class", "write Tensor(data)"),
    "asarray": ("a tensor is made by its class", "write Tensor(data)"),
    "untyped_storage": ("a tensor has no strides", "write x.data() for the bytes"),
    "data_ptr": ("memory moves when a value is computed anew", "write x.data() for the bytes"),
    "storage": ("a tensor has no strides", "write x.data() for the bytes"),
    "embedding": ("an embedding is an index", "write weight[x], or weft.nn.Embedding"),
    "batch_norm": ("its statistics are state", "write weft.nn.BatchNorm"),
    "strides": ("memory has no layout that shows", "write x.stride()"),
    "save": ("files hold named tensors", "write weft.nn.state.safe_save({name: x}, path)"),
    "load": ("files hold named tensors", "write weft.nn.state.safe_load(path)"),
    "astype": ("the elements are converted by cast", "write x.cast(dtype)"),
    "copy": ("a copy is a clone", "write x.clone()"),
    "lazydata": ("the graph of a tensor is a node", "write x.uop"),
    "schedule": ("nothing is scheduled by hand", "write x.realize(), or DEBUG=2 to see kernels"),
    "kernelize": ("kernels are made when a value is wanted", "write x.realize()"),
    "idiv": ("it has an operator", "write x // y, or x.div(y, rounding_mode='trunc')"),
    "_broadcast_to": ("it is public", "write x.broadcast_to(shape)"),
    "apply": ("functions are called with tensors", "write f(x), or numpy for each element"),
}
_SPARSE: Final = """
    ccol_indices coalesce col_indices crow_indices dense_dim dsmm hsmm hspmm row_indices saddmm
    smm spmm sspaddmm
""".split()  # noqa: SIM905
_QUANTIZING: Final = ("int_repr", "q_scale", "q_zero_point", "q_per_channel_axis", "qscheme")


def try_advice(name: str, known: list[str]) -> tuple[str, str] | None:
    """The rule and the fix for a name of another framework, or None."""
    if name in _TENSOR:
        return _TENSOR[name]
    if "sparse" in name or name in _SPARSE:
        return _DENSE
    if "quant" in name or name in _QUANTIZING:
        return _QUANTIZED
    plain = name.removesuffix("_")
    if plain != name and plain in known and not plain.startswith("_"):
        return ("a shape belongs to the name, not to the memory", f"write x = x.{plain}(...)")
    return None
