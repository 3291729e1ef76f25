"""Modules of modules: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from weft.nn.module import Layer
from weft.nn.parameter import Parameter
from weft.support.errors import ArgumentTypeError, IndexOutOfRange


class _Numbered(Layer):
    """Parts named 0, 1, 2 …, which are read and changed as those of a list."""

    _mode: bool | None = True

    def _parts(self) -> list[Any]:
        return [part for name, part in self.__dict__.items() if name.isdigit()]

    def _put(self, parts: Iterable[Any]) -> None:
        for name in [name for name in self.__dict__ if name.isdigit()]:
            delattr(self, name)
        for number, part in enumerate(parts):
            setattr(self, str(number), part)

    def __len__(self) -> int:
        return len(self._parts())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts())

    def __getitem__(self, key: Any) -> Any:
        parts = self._parts()
        if isinstance(key, slice):
            return (
                type(self)(*parts[key]) if isinstance(self, Sequential) else type(self)(parts[key])  # type: ignore[call-arg]
            )
        self._require(key, len(parts))
        return parts[key]

    def __setitem__(self, key: int, value: Any) -> None:
        self._require(key, len(self))
        setattr(self, str(key % len(self)), value)

    def __delitem__(self, key: Any) -> None:
        parts = self._parts()
        del parts[key]
        self._put(parts)

    def __contains__(self, item: Any) -> bool:
        return any(part is item for part in self._parts())

    def _require(self, key: Any, count: int) -> None:
        if not isinstance(key, int):
            raise ArgumentTypeError(
                f"{type(self).__name__}: expected a number, got {type(key).__name__}"
            )
        if not -count <= key < count:
            raise IndexOutOfRange(f"{type(self).__name__}: part {key} of {count}")

    def append(self, part: Any) -> Self:
        """Add a part at the end."""
        setattr(self, str(len(self)), part)
        return self

    def extend(self, parts: Iterable[Any]) -> Self:
        """Add several parts at the end."""
        for part in parts:
            self.append(part)
        return self

    def insert(self, index: int, part: Any) -> None:
        """Put a part before another."""
        parts = self._parts()
        parts.insert(index, part)
        self._put(parts)

    def pop(self, key: int = -1) -> Any:
        """Take a part out, and return it."""
        parts = self._parts()
        taken = parts.pop(key)
        self._put(parts)
        return taken


class Sequential(_Numbered):
    """Layers, or any functions of a tensor, that are called one after another.

    >>> from weft import Tensor
    >>> Sequential(Tensor.relu, Tensor.sqrt)(Tensor([-1.0, 4.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            for name, layer in layers[0].items():
                setattr(self, name, layer)
            return
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)):
            layers = tuple(layers[0])
        for number, layer in enumerate(layers):
            if not callable(layer):
                raise ArgumentTypeError(
                    f"Sequential: layer {number} is a {type(layer).__name__}",
                    rule="a layer is a module, or a function of a tensor",
                )
            setattr(self, str(number), layer)

    def _parts(self) -> list[Any]:
        return [part for name, part in self.__dict__.items() if not name.startswith("_")]

    def forward(self, x: Any) -> Any:
        """Call the layers in order."""
        for layer in self._parts():
            x = layer(x)
        return x


class ModuleList(_Numbered):
    """Modules in a list, named 0, 1, 2 …

    >>> from weft import nn
    >>> [name for name, _ in nn.ModuleList([nn.Linear(1, 1)]).named_parameters()]
    ['0.weight', '0.bias']
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(modules or [])

    def __iadd__(self, modules: Iterable[Any]) -> Self:
        return self.extend(modules)

    def __add__(self, modules: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *modules])


class ParameterList(_Numbered):
    """Parameters in a list; other tensors become parameters.

    >>> from weft import Tensor
    >>> len(list(ParameterList([Tensor([1.0]), Tensor([2.0])]).parameters()))
    2
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or [])

    def append(self, part: Any) -> Self:
        """Add a parameter at the end."""
        return super().append(part if isinstance(part, Parameter) else Parameter(part))


class ModuleDict(Layer):
    """Modules by name.

    >>> from weft import nn
    >>> list(nn.ModuleDict({"fc": nn.Linear(1, 1)}))
    ['fc']
    """

    _mode: bool | None = True

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def _items(self) -> dict[str, Any]:
        return {name: part for name, part in self.__dict__.items() if not name.startswith("_")}

    def _made(self, value: Any) -> Any:
        return value

    def __getitem__(self, key: str) -> Any:
        return self._items()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, self._made(value))

    def __delitem__(self, key: str) -> None:
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._items())

    def __contains__(self, key: object) -> bool:
        return key in self._items()

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._items().keys()

    def values(self) -> Iterable[Any]:
        """The parts."""
        return self._items().values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and parts."""
        return self._items().items()

    def update(self, modules: Any) -> None:
        """Take the parts of another dict, or of pairs."""
        pairs = modules.items() if hasattr(modules, "items") else modules
        for name, part in pairs:
            self[name] = part

    def pop(self, key: str) -> Any:
        """Take a part out, and return it."""
        taken = self[key]
        del self[key]
        return taken

    def clear(self) -> None:
        """Take all parts out."""
        for key in list(self):
            del self[key]


class ParameterDict(ModuleDict):
    """Parameters by name; other tensors become parameters.

    >>> from weft import Tensor
    >>> list(dict(ParameterDict({"w": Tensor([1.0])}).named_parameters()))
    ['w']
    """

    def _made(self, value: Any) -> Any:
        return value if isinstance(value, Parameter) else Parameter(value)
