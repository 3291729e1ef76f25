"""The pages of docs/reference/api/: every public name with its signature and docstring.

The methods of `Tensor` are grouped as their files are; a file that stands on no page of `FAMILIES`
is an error, so that no method is left out.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from docstring_page import entry, prose
from table_page import code, head, markdown_table, summary, wrapped

from weft.tensor.methods import in_place
from weft.tensor.tensor import Tensor

# Page: its title and the files of weft/tensor whose methods it shows.
FAMILIES: dict[str, tuple[str, str]] = {
    "tensor-create": ("Tensor: create and share", "create/creation create/like host/interop"),
    "tensor-random": (
        "Tensor: random numbers",
        "create/random create/random_state create/sampling",
    ),
    "tensor-convert": (
        "Tensor: values, dtypes, writes and gradients",
        "host/values host/convert methods/aliases methods/tinygrad_names special/hashes "
        "methods/sharding methods/bits writes methods/in_place autodiff/gradients autodiff/hooks "
        "training pytorch_names/questions pytorch_names/shape_in_place pytorch_names/further",
    ),
    "tensor-elementwise": (
        "Tensor: two operands",
        "methods/elementwise methods/arithmetic methods/logic methods/limits",
    ),
    "tensor-unary": ("Tensor: one operand", "methods/unary methods/angles methods/special"),
    "tensor-special": (
        "Tensor: special functions",
        "special/bessel special/normal special/gamma special/polynomials special/float_parts",
    ),
    "tensor-activations": ("Tensor: activations", "neural/activations neural/normalization"),
    "tensor-reduce": (
        "Tensor: reductions and scans",
        "methods/reduce indexing/extremes methods/statistics indexing/order_statistics "
        "methods/scan",
    ),
    "tensor-movement": (
        "Tensor: shapes",
        "methods/movement methods/arrangement methods/joining methods/rearrange methods/padding "
        "neural/windows views/copies views/parts",
    ),
    "tensor-index": (
        "Tensor: selecting, sorting and counting",
        "indexing/indexing indexing/selection indexing/scatters indexing/sorting "
        "indexing/counting indexing/histograms",
    ),
    "tensor-linalg": (
        "Tensor: products and linear algebra",
        "methods/matmul linalg/products linalg/combined linalg/solve linalg/triangular linalg/lu "
        "linalg/qr linalg/reflections linalg/spectral",
    ),
    "tensor-fourier": ("Tensor: Fourier transforms", "methods/fourier"),
    "tensor-complex": ("Tensor: complex numbers", "complexes/parts complexes/frames"),
    "tensor-nn": (
        "Tensor: convolutions, pools and losses",
        "neural/convolution neural/functional neural/pools neural/interpolate neural/losses "
        "neural/native",
    ),
}

# Page: its title, the package that users import from, and its names; none are all of its names.
MODULES: dict[str, tuple[str, str, str]] = {
    "functions": (
        "Functions: jit, function, custom_kernel, transforms",
        "weft",
        "jit save_function load_function function custom_kernel checkpoint grad value_and_grad "
        "vjp jvp jacobian hessian vmap scan associative_scan associative_reduce",
    ),
    "runtime": (
        "Devices, settings and counters",
        "weft",
        "Device Context GlobalCounters Variable UOp",
    ),
    "nn": ("nn: layers and data", "weft.nn", ""),
    "nn-functional": ("nn.functional", "weft.nn.functional", ""),
    "nn-optim": ("nn.optim: optimizers and schedules", "weft.nn.optim", ""),
    "nn-state": ("nn.state: state dicts", "weft.nn.state", ""),
    "nn-datasets": ("nn.datasets", "weft.nn.datasets", ""),
    "optim": ("optim: optimizers with parameter groups", "weft.optim", ""),
    "optim-lr_scheduler": ("optim.lr_scheduler", "weft.optim.lr_scheduler", ""),
    "optim-swa_utils": ("optim.swa_utils", "weft.optim.swa_utils", ""),
    "linalg": ("linalg", "weft.linalg", ""),
    "autograd": ("autograd", "weft.autograd", ""),
    "distributions": ("distributions", "weft.distributions", ""),
    "distributions-transforms": ("distributions.transforms", "weft.distributions.transforms", ""),
    "fft": ("fft: Fourier transforms of complex numbers", "weft.fft", ""),
    "masked": ("masked: reductions under a mask", "weft.masked", ""),
    "signal-windows": ("signal.windows", "weft.signal.windows", ""),
    "utils-data": ("utils.data: datasets, samplers, the loader", "weft.utils.data", ""),
    "io": ("io: files", "weft.io", ""),
}


def api_pages() -> dict[str, Callable[[], Iterator[str]]]:
    """Every page of the folder `api`, by its name below docs/reference."""
    pages: dict[str, Callable[[], Iterator[str]]] = {"api/tensor.md": tensor_page}
    for name in FAMILIES:
        pages[f"api/{name}.md"] = lambda name=name: family_page(name)
    for name in MODULES:
        pages[f"api/{name}.md"] = lambda name=name: module_page(name)
    return pages


# Tensor


def methods() -> dict[str, dict[str, list[str]]]:
    """The public methods: for each file, each method with its other names."""
    by_file: dict[str, dict[Any, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in dir(Tensor):
        raw = inspect.getattr_static(Tensor, name)
        made = inspect.unwrap(getattr(raw, "__func__", raw))
        if not name.startswith("_") and callable(made):
            by_file[_file(made)][made].append(name)
    return {
        file: {_own_name(made, names): names for made, names in sorted_by_name(found)}
        for file, found in by_file.items()
    }


def _file(made: Any) -> str:
    """The file of a method below weft/tensor, without its suffix."""
    return str(made.__module__).removeprefix("weft.tensor.").replace(".", "/")


def sorted_by_name(found: dict[Any, list[str]]) -> list[tuple[Any, list[str]]]:
    return sorted(found.items(), key=lambda item: _own_name(*item))


def _own_name(made: Any, names: list[str]) -> str:
    """Of several names of a method, that of its function where it is one of them."""
    own = made.__name__.removesuffix("_")
    return next((name for name in names if name in (made.__name__, own)), names[0])


def page_of_file() -> dict[str, str]:
    pages = {file: name for name, (_, files) in FAMILIES.items() for file in files.split()}
    for file in methods():
        if file not in pages:
            raise ValueError(f"weft/tensor/{file}.py stands on no page of tools/api_pages.py")
    return pages


def tensor_page() -> Iterator[str]:
    yield from head("Tensor", "weft/tensor/tensor.py")
    yield from list(prose(inspect.getdoc(Tensor) or ""))[1:]
    yield ""
    yield from wrapped("""
        Methods take arguments under their names in PyTorch and NumPy too: `dim` or `axis`,
        `keepdim` or `keepdims`. A class method makes a tensor, as in `Tensor.zeros(2, 3)`.
    """)
    yield ""
    yield "## Attributes"
    yield ""
    rows = [
        (code(name), summary(raw) if isinstance(raw, property) else ATTRIBUTES[name])
        for name in dir(Tensor)
        if not name.startswith("_")
        and not callable(raw := inspect.getattr_static(Tensor, name))
        and not isinstance(raw, (classmethod, staticmethod))
    ]
    yield from markdown_table(["attribute", "meaning"], rows)
    found, pages = methods(), page_of_file()
    for name, (title, _) in FAMILIES.items():
        yield ""
        yield f"## {title.partition(': ')[2].capitalize()}"
        yield ""
        names = sorted(own for file in found if pages[file] == name for own in found[file])
        own = [each for each in names if each.removesuffix("_") not in in_place.NAMES.split()]
        shown = own if name == "tensor-convert" else names
        yield from wrapped(", ".join(f"[{each}]({name}.md#{each.lower()})" for each in shown))


ATTRIBUTES = {
    "requires_grad": "Whether `backward` gives a gradient; None leaves it to `backward`.",
    "training": "Whether dropout and batch statistics behave as in training; `Tensor.train()`.",
}


def family_page(name: str) -> Iterator[str]:
    title, files = FAMILIES[name]
    found = methods()
    present = [file for file in files.split() if file in found]
    yield from head(title, ", ".join(f"weft/tensor/{file}.py" for file in present))
    yield "[All methods](tensor.md)"
    for file in present:
        yield ""
        yield "## " + _title(f"weft.tensor.{file}".replace("/", "."))
        generated = file == "methods/in_place"
        if generated:
            yield ""
            yield from wrapped(
                "These write what the method without the underscore returns to the tensor itself, "
                "and return it: " + ", ".join(code(each + "_") for each in in_place.NAMES.split())
            )
        for own, names in found[file].items():
            if generated and own.removesuffix("_") in in_place.NAMES.split():
                continue
            yield from entry(own, getattr(Tensor, own), "Tensor")
            others = [code(each) for each in names if each != own]
            if others:
                yield ""
                yield f"Also called {' and '.join(others)}."


def _title(module: str) -> str:
    """What a module is about: the first words of its docstring."""
    first = summary(import_module(module))
    return first.partition(":")[0].partition(". ")[0].removesuffix(".")


# Packages


def module_page(name: str) -> Iterator[str]:
    title, package, listed = MODULES[name]
    module = import_module(package)
    yield from head(title, f"the docstrings of {package}")
    yield from list(prose(f"Names of `{package}`." if listed else inspect.getdoc(module) or ""))[
        1:
    ]
    for each in listed.split() or public_names(module):
        documented = getattr(module, each)
        if inspect.ismodule(documented):
            continue
        yield from entry(each, documented, package, level=2)
        if isinstance(documented, type):
            for method in own_methods(documented):
                yield from entry(f"{each}.{method}", getattr(documented, method))


def public_names(module: Any) -> list[str]:
    """What a module lists as its names, or the functions and classes that it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed, key=str.lower)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def own_methods(documented: type) -> list[str]:
    """The public methods with a docstring that a class defines itself."""
    return [
        name
        for name, value in vars(documented).items()
        if not name.startswith("_")
        and callable(getattr(documented, name))
        and (inspect.getdoc(getattr(value, "__func__", value)) or "")
    ]
