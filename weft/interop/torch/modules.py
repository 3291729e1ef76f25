"""`weft.from_torch`: modules of PyTorch as modules of `weft.nn`, on the same weights.

A layer of `torch.nn` becomes the layer of that name, with the options that it was made with. A
module with a forward of its own is traced by torch.fx: its layers are converted and what it does
between them is done by the functions of Weft with the same names. State dicts keep their keys.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, Final

from weft import nn
from weft.interop.torch.traced import Traced, steps_of
from weft.nn.module import Module
from weft.support.errors import ArgumentTypeError, NotSupported
from weft.tensor.tensor import Tensor

# Names of arguments of our constructors that differ from PyTorch's attributes.
_ALIASES: Final = {
    "sz": "num_features", "vocab_size": "num_embeddings", "embed_size": "embedding_dim",
    "neg_slope": "negative_slope",
}  # fmt: skip
_RENAMED: Final = {"MultiheadAttention": "MultiHeadAttention"}
# Arguments that are about memory, the making of weights, or nothing here.
_IGNORED: Final = {
    "self", "device", "dtype", "inplace", "sparse", "_weight", "_freeze", "args", "kwargs",
    "mode",
}  # fmt: skip
_CONTAINERS: Final = ("Sequential", "ModuleList", "ModuleDict")


def from_torch(module: Any) -> Any:
    """Make a module of Weft of a PyTorch module, on the same memory where it is the CPU's.

    What either side writes to a weight, the other sees. Weights with gaps are copied. A module
    that uses what Weft lacks raises an error that names all of it.
    """
    torch: Any = import_module("torch")
    if not isinstance(module, torch.nn.Module):
        raise ArgumentTypeError(
            f"from_torch: expected a module of PyTorch, got {type(module).__name__}",
            fix="Tensor.from_dlpack(x) shares a tensor",
        )
    return _Converter(torch).converted(module)


class _Converter:
    """One call of `from_torch`; weights that are used twice become one tensor."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.tensors: dict[int, Tensor] = {}

    def converted(self, root: Any) -> Any:
        missing = sorted(set(self._missing(root)))
        if missing:
            raise NotSupported(
                f"from_torch: Weft has no {', '.join(missing)}",
                rule="layers of torch.nn become the layers of weft.nn with the same name",
                fix='torch.compile(module, backend="weft") runs such a module',
            )
        return self._module(root)

    def _missing(self, module: Any) -> list[str]:
        """The names of layers that have no counterpart."""
        name = type(module).__name__
        if not _is_of_torch(module):
            return [each for child in module.children() for each in self._missing(child)]
        if name in _CONTAINERS:
            return [each for child in module.children() for each in self._missing(child)]
        return [] if hasattr(nn, _RENAMED.get(name, name)) else [name]

    def _module(self, module: Any) -> Any:
        name = type(module).__name__
        if not _is_of_torch(module):
            made: Any = self._traced(module)
        elif name == "ModuleDict":
            made = nn.ModuleDict({key: self._module(part) for key, part in module.items()})
        elif name == "ModuleList":
            made = nn.ModuleList([self._module(part) for part in module])
        elif name == "Sequential":
            parts = {key: self._module(part) for key, part in module.named_children()}
            is_plain = list(parts) == [str(number) for number in range(len(parts))]
            made = nn.Sequential(*parts.values()) if is_plain else nn.Sequential(parts)
        else:
            made = self._layer(module)
        made.training = module.training
        return made

    def _layer(self, module: Any) -> Any:
        made = _made_layer(module)
        for path, tensor in module.named_parameters():
            self._put(made, path, tensor, is_parameter=True)
        for path, tensor in module.named_buffers():
            self._put(made, path, tensor, is_parameter=False)
        for (_, own), (_, part) in zip(_below(made), _below(module), strict=False):
            own.training = part.training
        return made

    def _put(self, made: Any, path: str, value: Any, is_parameter: bool) -> None:
        """Replace the tensor that the constructor made by a shared one."""
        *above, name = path.split(".")
        owner = made
        for part in above:
            owner = getattr(owner, part)
        old = getattr(owner, name, None)
        if old is None or tuple(old.shape) != tuple(value.shape):
            raise NotSupported(
                f"from_torch: {type(made).__name__} has no {path} of shape {tuple(value.shape)}"
            )
        if is_parameter:
            self._give_parameter(owner, name, value)
        else:
            setattr(owner, name, self._shared(value))

    def _give_parameter(self, owner: Any, name: str, value: Any) -> None:
        """A tensor is a parameter if it requires a gradient when it is assigned."""
        tensor = self._shared(value).requires_grad_(True)
        setattr(owner, name, tensor)
        tensor.requires_grad_(value.requires_grad)

    def _give_own(self, made: Module, module: Any) -> None:
        """The parameters and buffers that a module has beside its parts."""
        for name, value in module.named_parameters(recurse=False):
            self._give_parameter(made, name, value)
        for name, value in module.named_buffers(recurse=False):
            made.register_buffer(name, self._shared(value))

    def _shared(self, value: Any) -> Tensor:
        found = self.tensors.get(id(value))
        if found is None:
            found = self.tensors[id(value)] = Tensor.from_dlpack(value.detach())
        return found

    def _traced(self, module: Any) -> Any:
        """A module with a forward of its own, as a graph over its converted parts."""
        fx: Any = import_module("torch.fx")
        try:
            graph = fx.symbolic_trace(module).graph
        except Exception as error:
            raise NotSupported(
                f"from_torch: the forward of {type(module).__name__} cannot be traced: {error}",
                rule="what a forward does may not depend on values",
                fix='torch.compile(module, backend="weft") runs it',
            ) from error
        made = Traced(type(module).__name__)
        for name, part in module.named_children():
            setattr(made, name, self._part(part))
        self._give_own(made, module)
        made.set_steps(steps_of(graph, self.torch))
        return made

    def _part(self, module: Any) -> Any:
        """A part of a traced module; parts with a forward of their own are in its graph."""
        if _is_of_torch(module):
            return self._module(module)
        made = Module()
        for name, part in module.named_children():
            setattr(made, name, self._part(part))
        self._give_own(made, module)
        return made


def _is_of_torch(module: Any) -> bool:
    return type(module).__module__.startswith("torch.nn.")


def _below(module: Any) -> list[tuple[str, Any]]:
    return list(module.named_modules())


def _made_layer(module: Any) -> Any:
    """A layer of Weft with the options of one of PyTorch."""
    name = type(module).__name__
    kind: Any = getattr(nn, _RENAMED.get(name, name))
    if name in ("TransformerEncoder", "TransformerDecoder"):
        norm = None if module.norm is None else _made_layer(module.norm)
        return kind(_made_layer(module.layers[0]), len(module.layers), norm)
    if name == "Transformer":
        parts = (_made_layer(module.encoder), _made_layer(module.decoder))
        return kind(
            module.d_model,
            module.nhead,
            custom_encoder=parts[0],
            custom_decoder=parts[1],
            batch_first=module.batch_first,
        )
    accepted = set(inspect.signature(kind.__init__).parameters) - {"self"}
    options = _options(module)
    given, refused = {}, []
    aliases = {_ALIASES.get(each, each): each for each in accepted}
    for key, (value, default) in options.items():
        if key in aliases:
            given[aliases[key]] = value
        elif key not in _IGNORED and value != default:
            refused.append(f"{key}={value!r}")
    if refused:
        raise NotSupported(f"from_torch: {name} with {', '.join(refused)}")
    return kind(**given)


def _options(module: Any) -> dict[str, tuple[Any, Any]]:
    """What a module was made with, and the default, by the names of its constructor."""
    if type(module).__name__ in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
        return _encoder_options(module)
    made_by = type(module)
    if hasattr(module, "proj_size"):  # the constructors of LSTM and GRU take anything
        made_by = made_by.__mro__[1]
    found = {}
    for key, parameter in inspect.signature(made_by.__init__).parameters.items():
        value = getattr(module, key, inspect.Parameter.empty)
        if key == "bias" and not isinstance(value, bool):
            value = getattr(module, "in_proj_bias", value) is not None
            value = value or not getattr(module, "affine", True)
        if key in ("add_bias_kv", "kdim", "vdim"):
            plain = {"add_bias_kv": module.bias_k is not None}
            value = plain.get(key, None if value == module.embed_dim else value)
        if value is not inspect.Parameter.empty:
            found[key] = (value, parameter.default)
    if type(module).__name__ == "RNN":  # its constructor names no arguments
        found["nonlinearity"] = (module.nonlinearity, "tanh")
    return found


def _encoder_options(module: Any) -> dict[str, tuple[Any, Any]]:
    activation = getattr(module.activation, "__name__", type(module.activation).__name__.lower())
    return {
        "d_model": (module.self_attn.embed_dim, None),
        "nhead": (module.self_attn.num_heads, None),
        "dim_feedforward": (module.linear1.out_features, None),
        "dropout": (module.dropout.p, None),
        "activation": (activation, None),
        "layer_norm_eps": (module.norm1.eps, None),
        "batch_first": (module.self_attn.batch_first, None),
        "norm_first": (module.norm_first, None),
        "bias": (module.linear1.bias is not None, True),
    }
