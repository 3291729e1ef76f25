"""`Generator`: random numbers with a seed and a position of their own, for `generator=`."""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

from weft.support.errors import ArgumentTypeError
from weft.tensor.create.random_state import Source, drawing_from, require_random_state

Function = TypeVar("Function", bound=Callable[..., Any])


class Generator:
    """A stream of random numbers that no other draw moves on. PyTorch: Generator.

    >>> from weft.tensor import Tensor
    >>> first = Tensor.rand(2, generator=Generator().manual_seed(3)).tolist()
    >>> Tensor.rand(2, generator=Generator().manual_seed(3)).tolist() == first
    True
    """

    def __init__(self, device: Any = "CPU") -> None:
        self.device = device
        self._source = Source(0)

    def manual_seed(self, seed: int) -> Self:
        """Start anew at a seed, and return the generator."""
        self._source = Source(int(seed))
        return self

    def seed(self) -> int:
        """Start anew at a seed that nobody knows, and return it."""
        seed = secrets.randbits(53)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that the numbers started at."""
        return self._source.seed

    def get_state(self) -> dict[str, Any]:
        """What `set_state` goes on from."""
        return self._source.state()

    def set_state(self, new_state: dict[str, Any]) -> Self:
        """Go on where a state was taken."""
        require_random_state(new_state)
        self._source = Source(new_state["seed"])
        self._source.restore(new_state["devices"])
        return self

    def clone_state(self) -> Generator:
        """Another generator that draws the same numbers from here on."""
        return Generator(self.device).set_state(self.get_state())

    @property
    def source(self) -> Source:
        """What draws read."""
        return self._source


def takes_generator(function: Function) -> Function:
    """Let a function that draws take `generator=`, by name, or by position if it has one."""
    parameters = inspect.signature(function).parameters
    named = parameters.get("generator")
    is_placed = named is not None and named.kind == named.POSITIONAL_OR_KEYWORD
    position = list(parameters).index("generator") if is_placed else None

    @functools.wraps(function)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        generator = kwargs.pop("generator", None)
        if position is not None and len(args) > position:
            generator, args = args[position], args[:position]
        if generator is None:
            return function(*args, **kwargs)
        if not isinstance(generator, Generator):
            raise ArgumentTypeError(
                f"{function.__name__}: generator is of type {type(generator).__name__}",
                rule="a generator is a weft.Generator",
            )
        with drawing_from(generator.source):
            return function(*args, **kwargs)

    return cast(Function, drawn)
