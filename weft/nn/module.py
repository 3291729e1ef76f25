"""`Module`: what a model inherits from to have parameters, buffers, hooks and a mode of its own.

Models need no base class: plain classes keep working. A tensor that a module is given is a
parameter if it requires a gradient when it is assigned (`nn.Parameter`, weights of layers), and
stays one when it is frozen. Other tensors are constants; `register_buffer` makes one a part of the
state. Lists, dicts and plain objects of layers are walked as `nn.state` walks them.

While a module runs, `Tensor.training` is what `train()` or `eval()` said of it; it trains until
one says otherwise, as in PyTorch. A layer that tinygrad has too follows `Tensor.training` until
then.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from weft.ir.dtypes import DType, dtypes
from weft.nn.functional.inputs import is_no_input, refusal
from weft.nn.module_walk import Found, children_of, inside, tensors_below
from weft.nn.parameter import is_parameter, try_persistent
from weft.support.errors import ArgumentError, NotSupported, UnknownAttribute
from weft.support.message import nearest
from weft.support.signatures import NamedErrors
from weft.tensor.tensor import Tensor


class LoadResult(NamedTuple):
    """The names that only one side had."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Handle:
    """What `register_…_hook` returns: `remove` or the end of a `with` takes the hook away."""

    def __init__(self, hooks: dict[int, Any], number: int) -> None:
        self.hooks, self.number = hooks, number

    def remove(self) -> None:
        """Take the hook away."""
        self.hooks.pop(self.number, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Module:
    """A model with what everyone types: parameters(), state_dict(), train(), to(), print(model).

    >>> from weft import nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.fc = nn.Linear(3, 2)
    ...     def forward(self, x):
    ...         return self.fc(x).relu()
    >>> net = Net()
    >>> [name for name, _ in net.named_parameters()], net(Tensor.ones(4, 3)).shape
    (['fc.weight', 'fc.bias'], (4, 2))
    """

    # Whether the module trains; None follows Tensor.training.
    _mode: bool | None = True
    # Those before forward and those behind it, by number; None where there never was one.
    _hooks: tuple[dict[int, Any], dict[int, Any]] | None = None

    def __init__(self) -> None:
        pass

    @property
    def training(self) -> bool:
        """Whether dropout and batch statistics behave as in training here."""
        return Tensor.training if self._mode is None else self._mode

    @training.setter
    def training(self, value: bool) -> None:
        self.__dict__["_mode"] = bool(value)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and is_parameter(value):
            self.__dict__.setdefault("_own_parameters", {})[name] = None
        elif isinstance(value, Tensor) and name in self.__dict__.get("_own_parameters", ()):
            del self.__dict__["_own_parameters"][name]
        if isinstance(value, Tensor) and (persistent := try_persistent(value)) is not None:
            self.__dict__.setdefault("_own_buffers", {})[name] = persistent
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for kind in ("_own_parameters", "_own_buffers"):
            self.__dict__.get(kind, {}).pop(name, None)
        object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        """Answer a misspelt name as tensors do."""
        own = [key for key in (*self.__dict__, *dir(type(self))) if not key.startswith("_")]
        guess = None if name.startswith("_") else nearest(name, own)
        raise UnknownAttribute(
            f"{type(self).__name__} has no attribute {name!r}",
            fix=f"write {guess}" if guess else "",
        )

    # Calls and hooks.
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; a model defines it."""
        raise NotSupported(
            f"{type(self).__name__}: there is no forward",
            rule="a module computes in forward(self, ...)",
            fix="define it in the class",
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._mode is None or self._mode is Tensor.training:
            return self._called(args, kwargs)
        with Tensor.train(self._mode):
            return self._called(args, kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        hooks = self._hooks
        if hooks is None:
            return self.forward(*args, **kwargs)
        before, after = hooks
        for hook, with_kwargs in list(before.values()):
            if with_kwargs:
                changed = hook(self, args, kwargs)
                args, kwargs = (args, kwargs) if changed is None else changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook, with_kwargs in list(after.values()):
            given = (self, args, kwargs, result) if with_kwargs else (self, args, result)
            changed = hook(*given)
            result = result if changed is None else changed
        return result

    def _hook(self, kind: int, hook: Any, with_kwargs: bool, prepend: bool) -> Handle:
        if self._hooks is None:
            self.__dict__["_hooks"] = ({}, {})
        hooks = self.__dict__["_hooks"][kind]
        number = min(hooks, default=0) - 1 if prepend else max(hooks, default=0) + 1
        hooks[number] = (hook, with_kwargs)
        if prepend:
            ordered = sorted(hooks.items())
            hooks.clear()
            hooks.update(ordered)
        return Handle(hooks, number)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call hook(module, args) before forward; what it returns replaces the arguments."""
        return self._hook(0, hook, with_kwargs, prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> Handle:
        """Call hook(module, args, output) after forward; what it returns replaces the output."""
        return self._hook(1, hook, with_kwargs, prepend)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Refuse: nothing is recorded that a hook could follow."""
        raise NotSupported(
            "register_full_backward_hook: gradients are graphs, and nothing runs between layers",
            fix="write @weft.function(gradient=...) around the value whose gradient changes",
        )

    # What a module has.
    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Give the module a parameter, or None instead of one."""
        _require_name(name)
        if param is not None:
            if param._wants is None:
                param.requires_grad_(True)
            self.__dict__.setdefault("_own_parameters", {})[name] = None
        object.__setattr__(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Give the module a tensor that is state and is not trained; saved if `persistent`."""
        _require_name(name)
        if tensor is not None:
            tensor.requires_grad = False
        self.__dict__.setdefault("_own_buffers", {})[name] = persistent
        object.__setattr__(self, name, tensor)

    def register_module(self, name: str, module: Any) -> None:
        """Give the module a child."""
        _require_name(name)
        setattr(self, name, module)

    add_module = register_module

    def _found(self, prefix: str, recurse: bool, unique: bool) -> Iterator[Found]:
        seen: set[int] = set()
        for found in tensors_below(self, prefix, recurse):
            if unique and id(found.tensor) in seen:
                continue
            seen.add(id(found.tensor))
            yield found

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The parameters with their names; `recurse` for those of children too."""
        for found in self._found(prefix, recurse, remove_duplicate):
            if found.is_parameter:
                yield found.name, found.tensor

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """The parameters, each once."""
        return (tensor for _, tensor in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        for found in self._found(prefix, recurse, remove_duplicate):
            if found.is_buffer:
                yield found.name, found.tensor

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly below, with their names."""
        yield from children_of(self)

    def children(self) -> Iterator[Any]:
        """The modules directly below."""
        return (child for _, child in self.named_children())

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This module and all below it, with their names; itself is named ""."""
        memo = set() if memo is None else memo
        if id(self) in memo and remove_duplicate:
            return
        memo.add(id(self))
        yield prefix, self
        for name, child in self.named_children():
            inner = f"{prefix}.{name}" if prefix else name
            yield from child.named_modules(memo, inner, remove_duplicate)

    def modules(self) -> Iterator[Any]:
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> Any:
        """The module with a name such as "layers.0"."""
        return inside(self, target) if target else self

    def get_parameter(self, target: str) -> Tensor:
        """The parameter with a name such as "layers.0.weight"."""
        found: Tensor = inside(self, target)
        return found

    get_buffer = get_parameter

    # Changes to everything below.
    def apply(self, fn: Callable[[Any], object]) -> Self:
        """Call a function with every module, children first, and return this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Say that this module and all below it train, and return it."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Say that nothing below trains."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say whether the parameters get gradients: False freezes them."""
        for tensor in self.parameters():
            tensor.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or make zeros of them."""
        for tensor in self.parameters():
            tensor.grad = None if set_to_none or tensor.grad is None else tensor.grad.zeros_like()

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters and buffers to a device, or floats of them to a dtype, and return it."""
        kwargs.pop("non_blocking", None)
        for found in self._found("", True, True):
            _moved(found.tensor, args, kwargs)
        return self

    def _cast(self, dtype: str) -> Self:
        return self.to(dtype=dtype)

    def float(self) -> Self:
        """Cast floats to float32."""
        return self._cast("float32")

    def double(self) -> Self:
        """Cast floats to float64."""
        return self._cast("float64")

    def half(self) -> Self:
        """Cast floats to float16."""
        return self._cast("float16")

    def bfloat16(self) -> Self:
        """Cast floats to bfloat16."""
        return self._cast("bfloat16")

    def type(self, dst_type: Any) -> Self:
        """Cast floats to a dtype."""
        return self.to(dtype=dst_type)

    def cpu(self) -> Self:
        """Move everything to the CPU."""
        return self.to(device="CPU")

    def cuda(self, device: Any = None) -> Self:
        """Move everything to the GPU."""
        return self.to(device="CUDA" if device is None else f"CUDA:{device}")

    # State.
    def state_dict(
        self,
        destination: dict[str, Tensor] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Tensor]:
        """Parameters and persistent buffers by name; they share memory with the module."""
        state: dict[str, Tensor] = OrderedDict() if destination is None else destination
        for found in self._found(prefix.removesuffix("."), True, False):
            if found.is_state:
                state[found.name] = found.tensor if keep_vars else found.tensor.detach()
        return state

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> LoadResult:
        """Take the values of a dict by name. Where `strict`, both sides have the same names."""
        from weft.nn.state import load_into

        own = self.state_dict(keep_vars=True)
        missing, unexpected = load_into(own, dict(state_dict), strict, type(self).__name__)
        return LoadResult(missing, unexpected)

    # What it prints.
    def extra_repr(self) -> str:
        """What `repr` shows of this module itself: the shapes of its own tensors."""
        own = [f for f in tensors_below(self, "", False) if f.is_parameter or f.is_buffer]
        return ", ".join(f"{each.name} {tuple(each.tensor.shape)}" for each in own)

    def __repr__(self) -> str:
        is_open = any("_uninitialized" in each.__dict__ for each in self.modules())
        count = 0 if is_open else sum(int(tensor.numel()) for tensor in self.parameters())
        text = self._tree()
        return f"{text}  # {count:,} parameters" if count else text

    def _tree(self) -> str:
        lines = []
        for name, child in self.named_children():
            shown = child._tree() if isinstance(child, Module) else repr(child)
            lines.append(f"({name}): " + shown.replace("\n", "\n  "))
        extra = self.extra_repr()
        if not lines:
            return f"{type(self).__name__}({extra})"
        body = "\n  ".join(([extra] if extra else []) + lines)
        return f"{type(self).__name__}(\n  {body}\n)"


class Layer(NamedErrors, Module):
    """A module of this package: it follows `Tensor.training` until train() or eval() is called.

    Those that PyTorch alone has and that differ in training set `_mode`: they train until then.
    """

    _mode: bool | None = None

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args and args[0].__class__ is not Tensor and is_no_input(args[0]):
            raise refusal(type(self).__name__, args[0])
        return super()._called(args, kwargs)


def _require_name(name: Any) -> None:
    if not isinstance(name, str) or not name or "." in name:
        raise ArgumentError(
            f"a name is {name!r}", rule="it is a string with no dot, and not empty"
        )


def _moved(tensor: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Give a tensor its value on another device or in another dtype; integers keep theirs."""
    if not tensor.is_floating_point():
        kwargs = {key: value for key, value in kwargs.items() if key != "dtype"}
        args = tuple(each for each in args if isinstance(each, str) and not _is_dtype(each))
    args = tuple(each if not _is_dtype(each) else _dtype(each) for each in args)
    new = tensor.detach().to(*args, **kwargs)
    if new.dtype is not tensor.dtype or new.device != tensor.device:
        requires_grad = tensor._wants
        tensor.replace(new._same())
        tensor.requires_grad = requires_grad


def _is_dtype(value: Any) -> bool:
    return isinstance(value, DType) or (
        isinstance(value, str) and isinstance(getattr(dtypes, value, None), DType)
    )


def _dtype(value: Any) -> Any:
    return getattr(dtypes, value) if isinstance(value, str) else value
