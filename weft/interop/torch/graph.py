"""From a graph of torch.fx to a `Program`: steps of Weft's functions, as data without torch.

AOTAutograd hands over graphs of ATen operators without writes. What such a graph draws at random
is taken out of it: PyTorch draws it before the program runs, so that its seed decides, and its
numbers are those of a run without a compiler. All that cannot be computed is named at once.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

from weft.interop.torch.layout import Layout, layout_of
from weft.interop.torch.sizes import Sizes, Symbols, is_number, static_ints
from weft.interop.torch.table import Call, Function, operators
from weft.ir.dtypes import DType, by_name
from weft.support.errors import NotSupported, UsageError
from weft.support.source_line import NOWHERE

# What speaks of PyTorch's memory, not of values.
_OF_MEMORY: Final = {"device", "layout", "pin_memory", "memory_format", "non_blocking"}
_FLOAT8: Final = {
    "float8_e4m3fn": "fp8e4m3",
    "float8_e5m2": "fp8e5m2",
    "float8_e4m3fnuz": "fp8e4m3fnuz",
    "float8_e5m2fnuz": "fp8e5m2fnuz",
}
_PYTHON: Final = ("_operator", "operator", "builtins", "math")
_SYMBOLIC: Final[dict[str, Function]] = {
    "sym_max": builtins.max,
    "sym_min": builtins.min,
    "sym_float": builtins.float,
    "sym_not": operator.not_,
}
# Draws in which a tensor says shape and dtype only.
_LIKE: Final = {
    "rand_like", "randn_like", "randint_like", "uniform", "normal_functional", "bernoulli.p",
    "exponential", "log_normal", "geometric", "cauchy",
}  # fmt: skip
_MADE: Final = {"rand", "randn", "randint", "randperm", "normal.float_float"}


class Ref(NamedTuple):
    """The value of a node of the graph, by number."""

    number: int


class Expected(NamedTuple):
    """What PyTorch says of a result; a shape that varies is None."""

    dtype: DType
    shape: tuple[int, ...] | None


class Step(NamedTuple):
    """One node: a function and its arguments, in which `Ref`s stand for values."""

    name: str
    function: Function
    call: Call | None  # None for functions of Python
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: int
    expected: Any  # an Expected, a tuple of those, or None for what is not a tensor


class Output(NamedTuple):
    """A result of the graph: a tensor with its layout, an input as it is, or a number."""

    kind: str  # "value", "input" or "number"
    source: Any
    layout: Layout | None = None


class Program(NamedTuple):
    """A graph as data; inputs are those of the graph, then constants, then what is drawn."""

    inputs: tuple[int, ...]  # the number of each input's node
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    constants: tuple[Any, ...]
    draws: tuple[Callable[[Sizes], Any], ...]
    symbols: Symbols


def dtype_of(dtype: Any) -> DType:
    """The dtype of Weft for one of PyTorch."""
    name = str(dtype).removeprefix("torch.")
    return by_name(_FLOAT8.get(name, name))


def read_graph(module: Any) -> Program:
    """The program of a GraphModule; raises for all that it has and Weft lacks."""
    return _Reader(module).read()


class _Reader:
    def __init__(self, module: Any) -> None:
        self.torch: Any = import_module("torch")
        self.module = module
        self.numbers: dict[Any, int] = {}
        self.inputs: list[int] = []
        self.constants: list[Any] = []
        self.draws: list[Callable[[Sizes], Any]] = []
        self.extra: list[int] = []  # numbers of constants and draws, in their order
        self.steps: list[Step] = []
        self.outputs: tuple[Output, ...] = ()
        self.missing: dict[str, int] = {}
        self.symbols = Symbols()

    def read(self) -> Program:
        for node in self.module.graph.nodes:
            self._read_node(node)
        if self.missing:
            raise _missing_error(self.missing)
        draws = [number for number in self.extra if number < 0]
        constants = [number for number in self.extra if number >= 0]
        inputs = (*self.inputs, *constants, *draws)
        return Program(
            inputs, tuple(self.steps), self.outputs, tuple(self.constants), tuple(self.draws),
            self.symbols,
        )  # fmt: skip

    def _number(self, node: Any) -> int:
        return self.numbers.setdefault(node, len(self.numbers))

    def _read_node(self, node: Any) -> None:
        if node.op == "placeholder":
            self.symbols.enter(node.meta.get("val"), len(self.inputs))
            self.inputs.append(self._number(node))
            self._require(node)
        elif node.op == "get_attr":
            self.constants.append(operator.attrgetter(node.target)(self.module).detach())
            self.extra.append(self._number(node))
        elif node.op == "output":
            self.outputs = tuple(self._output(each) for each in node.args[0])
        elif node.op == "call_function":
            self._read_call(node)
        else:
            self._miss(f"{node.op} {node.target}")

    def _miss(self, name: str) -> None:
        self.missing[name] = self.missing.get(name, 0) + 1

    def _require(self, node: Any) -> bool:
        """Whether Weft has the dtype and the device of what a node gives."""
        fine = True
        for value in _listed(node.meta.get("val")):
            if isinstance(value, self.torch.Tensor):
                if value.is_complex() or value.is_quantized or value.layout != self.torch.strided:
                    self._miss(f"tensors of {value.dtype}, {value.layout}")
                    fine = False
                elif value.device.type != "cpu":
                    self._miss(f"the device {value.device.type}")
                    fine = False
        return fine

    def _read_call(self, node: Any) -> None:
        target = node.target
        name = str(target).removeprefix("aten.")
        if getattr(target, "__module__", "") in _PYTHON:
            self._step(node, getattr(target, "__name__", name), target, None)
        elif name in _SYMBOLIC or getattr(target, "__name__", "") in _SYMBOLIC:
            self._step(node, name, _SYMBOLIC[target.__name__], None)
        elif not self._require(node):
            return
        elif self._draws(node, name):
            self._read_draw(node, name)
        elif name in operators():
            self._step(node, name, operators()[name], self._call(node, name))
        else:
            self._miss(name)

    def _draws(self, node: Any, name: str) -> bool:
        """Whether a node draws at random; attention does only where it drops."""
        if name.startswith("_scaled_dot_product") and not (node.args[3:4] or (0,))[0]:
            return False
        return self.torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())

    def _call(self, node: Any, name: str) -> Call:
        tensors = [each.meta.get("val") for each in node.all_input_nodes]
        strides = tuple(
            static_ints(each.stride()) if isinstance(each, self.torch.Tensor) else None
            for each in tensors
        )
        expected = self._expected(node.meta.get("val"))
        results = [expected] if isinstance(expected, Expected) else list(expected or ())
        dtype = next((each.dtype for each in results if isinstance(each, Expected)), None)
        shapes = tuple(each.shape if isinstance(each, Expected) else None for each in results)
        return Call(name, dtype, self._common(node.args), strides, shapes)

    def _common(self, args: Any) -> DType | None:
        """What PyTorch promotes the operands among the arguments to."""
        metas = [each.meta.get("val") if hasattr(each, "meta") else each for each in args]
        operands = [
            each for each in metas if isinstance(each, self.torch.Tensor) or is_number(each)
        ]
        if not any(isinstance(each, self.torch.Tensor) for each in operands):
            return None
        prims: Any = import_module("torch._prims_common")
        kind = prims.ELEMENTWISE_TYPE_PROMOTION_KIND.NO_OPMATH
        return dtype_of(prims.elementwise_dtypes(*operands, type_promotion_kind=kind)[1])

    def _step(
        self, node: Any, name: str, function: Function, call: Call | None, *more: Any
    ) -> None:
        kwargs = {
            key: self._argument(value)
            for key, value in node.kwargs.items()
            if key not in _OF_MEMORY
        }
        args = (*(self._argument(each) for each in node.args), *more)
        expected = self._expected(node.meta.get("val"))
        self.steps.append(Step(name, function, call, args, kwargs, self._number(node), expected))

    def _expected(self, value: Any) -> Any:
        if isinstance(value, self.torch.Tensor):
            return Expected(dtype_of(value.dtype), static_ints(value.shape))
        if isinstance(value, (list, tuple)):
            return tuple(self._expected(each) for each in value)
        return None

    def _argument(self, value: Any) -> Any:
        if value in self.numbers if _is_node(value) else False:
            return Ref(self.numbers[value])
        if isinstance(value, (list, tuple)):
            return tuple(self._argument(each) for each in value)
        if isinstance(value, self.torch.dtype):
            return dtype_of(value)
        return value

    def _read_draw(self, node: Any, name: str) -> None:
        """Let PyTorch draw before the program runs, and compute the rest of the operator here."""
        base = name.split(".")[0]
        value = node.meta["val"]
        if name == "native_dropout.default":
            self._read_dropout(node, name, value[0])
        elif name == "bernoulli.default":
            drawn = self._drawn(
                lambda sizes: self.torch.rand(sizes(value.shape), dtype=value.dtype)
            )
            rows = operators()
            self._step(node, name, rows["bernoulli.drawn"], self._call(node, name), Ref(drawn))
        elif {name, base} & (_LIKE | _MADE):
            number = self._drawn(self._drawer(node))
            self.numbers[node] = number
        else:
            self._miss(name)

    def _read_dropout(self, node: Any, name: str, value: Any) -> None:
        p, training = node.args[1], node.args[2] if len(node.args) > 2 else None
        more: tuple[Any, ...] = ()
        if training is not False:
            drawn = self._drawn(
                lambda sizes: self._empty(value, sizes, self.torch.bool).bernoulli_(1 - p)
            )
            more = (Ref(drawn),)
        self._step(node, name, operators()[name], self._call(node, name), *more)

    def _empty(self, like: Any, sizes: Sizes, dtype: Any) -> Any:
        """Memory in the order of a tensor's, because numbers are drawn in that order."""
        order = layout_of(like).order
        return self.torch.empty_permuted(sizes(like.shape), order, dtype=dtype)

    def _drawn(self, draw: Callable[[Sizes], Any]) -> int:
        self.draws.append(draw)
        number = -len(self.draws)
        self.extra.append(number)
        return number

    def _drawer(self, node: Any) -> Callable[[Sizes], Any]:
        """The operator itself, with empty tensors where it takes one."""

        def given(value: Any, sizes: Sizes) -> Any:
            if _is_node(value):
                value = value.meta["val"]
            if isinstance(value, self.torch.Tensor):
                return self._empty(value, sizes, value.dtype)
            if isinstance(value, (list, tuple)):
                return [given(each, sizes) for each in value]
            return sizes.number(value) if isinstance(value, self.torch.SymInt) else value

        def draw(sizes: Sizes) -> Any:
            args = [given(each, sizes) for each in node.args]
            kwargs = {key: given(value, sizes) for key, value in node.kwargs.items()}
            return node.target(*args, **kwargs)

        return draw

    def _output(self, value: Any) -> Output:
        if not _is_node(value):
            return Output("number", value)
        meta = value.meta.get("val")
        if value.op == "placeholder":
            return Output("input", self.inputs.index(self.numbers[value]))
        if not isinstance(meta, self.torch.Tensor):
            return Output("number", meta)
        return Output("value", self.numbers.get(value, -1), layout_of(meta))


def _is_node(value: Any) -> bool:
    return hasattr(value, "all_input_nodes")


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


def _missing_error(missing: dict[str, int]) -> UsageError:
    rows = [(name, f"{count} times" if count > 1 else "once") for name, count in missing.items()]
    return NotSupported(
        f"torch.compile: Weft lacks {len(rows)} of what this graph uses: " + ", ".join(missing),
        facts=sorted(rows),
        rule="every operator of a graph is computed by Weft, on the CPU",
        fix="leave that part to PyTorch: put it in a function under torch.compiler.disable",
        where=NOWHERE,
    )
