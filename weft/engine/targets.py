"""Targets by name, and the renderer of each: what can be made without the machine being here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir.program import Program
from weft.support.errors import UnknownName
from weft.target.target import Target

Renderer = Callable[[Program, Target], str]


def find_target(name: str) -> Target:
    """The target with this name; this machine's CPU where there is none.

    >>> find_target("CUDA:PTX:sm_80").name, find_target("cuda").device
    ('CUDA:PTX:sm_80', 'CUDA')
    """
    kind, mark, rest = name.partition(":")
    kind = kind.upper() or "CPU"
    if kind not in _TARGETS:
        raise UnknownName(
            f"target: there is no target {name!r}",
            rule="a target is device:renderer:arch, of the devices " + ", ".join(_TARGETS),
        )
    return _TARGETS[kind](kind + mark + rest)


def renderer_of(target: Target) -> Renderer:
    """What writes programs for a target as source."""
    return _RENDERERS[target.renderer]()


def _llvm() -> Renderer:
    from weft.render.llvm.renderer import render

    return render


def _c_language() -> Renderer:
    from weft.render.c_family.c import render

    return render


def _opencl_language() -> Renderer:
    from weft.render.c_family.opencl import render

    return render


# A renderer is imported where something is to be rendered.
_RENDERERS: Final[dict[str, Callable[[], Renderer]]] = {
    "LLVM": _llvm,
    "PTX": _llvm,
    "C": _c_language,
    "CL": _opencl_language,
}


def _cpu(name: str) -> Target:
    from weft.runtime.host import host_target
    from weft.target.cpu import parse_cpu

    return parse_cpu(name) if ":" in name else host_target()


def _cuda(name: str) -> Target:
    from weft.target.cuda import cuda_target, parse_cuda

    return parse_cuda(name) if ":" in name else cuda_target()


def _c(name: str) -> Target:
    from weft.target.c import c_target

    return c_target(name.split(":")[2]) if name.count(":") == 2 else c_target()


def _opencl(name: str) -> Target:
    from weft.target.opencl import opencl_target

    arch = name.split(":")[2].split(",") if name.count(":") == 2 else ["any", "fp64", "exact32"]
    return opencl_target(arch[0], has_float64="fp64" in arch, rounds_float32="exact32" in arch)


_TARGETS: Final[dict[str, Callable[[str], Target]]] = {
    "CPU": _cpu,
    "CUDA": _cuda,
    "C": _c,
    "OPENCL": _opencl,
}
