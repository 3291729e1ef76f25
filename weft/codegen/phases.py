"""THE LIST: the passes that make a program out of a kernel, in order, each with its reason."""

from __future__ import annotations

from typing import Final

from weft.codegen.choose.choose_opts import choose_opts
from weft.codegen.context import CodegenContext
from weft.codegen.decompose.decompose import FUNCTIONS, decompose
from weft.codegen.decompose.small_floats import emulate_small_floats
from weft.codegen.decompose.wide_integers import emulate_wide_integers
from weft.codegen.linear.drop_barriers import drop_barriers
from weft.codegen.linear.linearize import linearize
from weft.codegen.linear.load_ahead import load_ahead
from weft.codegen.linear.load_before_products import load_before_products
from weft.codegen.linear.pipeline import pipeline
from weft.codegen.linear.prefetch_tiles import prefetch_tiles
from weft.codegen.lower.expand import expand
from weft.codegen.lower.flatten_memory import flatten_memory
from weft.codegen.lower.fragments import fill_fragments
from weft.codegen.lower.lower_index import bind_hardware, lower_index
from weft.codegen.lower.lower_reductions import REDUCTIONS, lower_reductions, widen_reductions
from weft.codegen.lower.merge_reductions import merge_reductions
from weft.codegen.lower.normalize_kernel import normalize_kernel
from weft.codegen.lower.scalarize import is_scalar, scalarize
from weft.codegen.lower.thread_reductions import reduce_over_threads
from weft.ir.dtypes import DType
from weft.ir.ops import Op
from weft.ir.spec.kernel import KERNEL_SPEC
from weft.ir.spec.lowered import (
    ACCUMULATED_SPEC,
    BOUND_SPEC,
    EXPANDED_SPEC,
    FLAT_SPEC,
    FRAGMENT_SPEC,
    INDEXED_SPEC,
    JOINED_SPEC,
    NORMAL_SPEC,
    WIDENED_SPEC,
    decomposed_spec,
    emulated_floats_spec,
    native_spec,
    scalar_spec,
)
from weft.ir.spec.program import PROGRAM_SPEC
from weft.ir.spec.spec import Spec
from weft.rewrite.phase import Pass, Phase, SpecFor

_LACKING: Final = frozenset(FUNCTIONS)


def _emulated_floats(context: CodegenContext) -> Spec:
    return emulated_floats_spec(context.target.native_dtypes, context.target.rounded_dtypes)


def _abilities(
    context: CodegenContext,
) -> tuple[frozenset[DType], frozenset[int], frozenset[int], frozenset[DType]]:
    """What the target computes with, the ops that can be decomposed, and what it rounds to."""
    target = context.target
    return target.native_dtypes, target.written_ops, _LACKING, target.rounded_dtypes


def _decomposed(context: CodegenContext) -> Spec:
    return decomposed_spec(*_abilities(context))


def _native(context: CodegenContext) -> Spec:
    return native_spec(*_abilities(context))


def _scalar(context: CodegenContext) -> Spec:
    made = scalar_spec if is_scalar(context.target) else native_spec
    return made(*_abilities(context))


# What comes before the opts of a kernel: the kernel that they speak of.
SHAPED: Final = Phase(
    "codegen before choose-opts",
    (
        Pass(
            "normalize-kernel",
            normalize_kernel,
            because="later passes rely on a full table of loops and on indices in normal form",
            gives=NORMAL_SPEC,
        ),
        Pass(
            "widen-reductions",
            widen_reductions,
            because="a sum of small floats in small floats loses all of its digits",
            needs=REDUCTIONS,
            gives=WIDENED_SPEC,
        ),
        Pass(
            "merge-reductions",
            merge_reductions,
            because="reductions over the same data share one loop",
            needs={Op.REDUCE},
            gives=WIDENED_SPEC,
        ),
    ),
    takes=KERNEL_SPEC,
    gives=KERNEL_SPEC,
)

CODEGEN: Final = Phase(
    "codegen",
    (
        *SHAPED.passes,
        Pass(
            "choose-opts",
            choose_opts,
            because="the shape of the loops decides how fast a kernel is",
            gives=WIDENED_SPEC,
        ),
        Pass(
            "flatten-memory",
            flatten_memory,
            because="memory is flat, and a stage is a store that others wait for",
            gives=FLAT_SPEC,
        ),
        Pass(
            "fill-fragments",
            fill_fragments,
            because="a thread has all its elements of a tile at once",
            needs={Op.CONTRACT},
            gives=FRAGMENT_SPEC,
        ),
        Pass(
            "expand",
            expand,
            because="vector and unroll ranges become lanes and copies",
            needs={Op.RANGE},
            gives=EXPANDED_SPEC,
        ),
        Pass(
            "reduce-over-threads",
            reduce_over_threads,
            because="threads that share a reduction exchange their parts",
            needs={Op.REDUCE},
            gives=JOINED_SPEC,
        ),
        Pass(
            "lower-reductions",
            lower_reductions,
            because="a reduction is an accumulator, its first value and a loop that updates it",
            needs=REDUCTIONS,
            gives=ACCUMULATED_SPEC,
        ),
        Pass(
            "bind-hardware",
            bind_hardware,
            because="grid and thread ranges are counters of the machine",
            needs={Op.RANGE},
            gives=BOUND_SPEC,
        ),
        Pass(
            "lower-index",
            lower_index,
            because="machines compute indices in 32 or 64 bits",
            gives=INDEXED_SPEC,
        ),
        Pass(
            "emulate-small-floats",
            emulate_small_floats,
            because="a target may keep floats in memory that it cannot compute with",
            gives=SpecFor("kernel of native floats", _emulated_floats),
        ),
        Pass(
            "decompose",
            decompose,
            because="what a target lacks is made of what it has",
            gives=SpecFor("kernel of native ops", _decomposed),
        ),
        Pass(
            "emulate-wide-integers",
            emulate_wide_integers,
            because="a target may have no integers of 64 bits",
            gives=SpecFor("native kernel", _native),
        ),
        Pass(
            "scalarize",
            scalarize,
            because="a thread of a GPU computes with scalars; its vectors are for memory",
            gives=SpecFor("scalar kernel", _scalar),
        ),
        Pass("linearize", linearize, because="a program is a list", gives=PROGRAM_SPEC),
        Pass(
            "drop-barriers",
            drop_barriers,
            because="threads wait only for what they read of each other",
            needs={Op.BARRIER},
            gives=PROGRAM_SPEC,
        ),
        Pass(
            "load-ahead",
            load_ahead,
            because="threads stand still where they exchange values",
            needs={Op.SHUFFLE},
            gives=PROGRAM_SPEC,
        ),
        Pass(
            "prefetch-tiles",
            prefetch_tiles,
            because="the next tile is loaded while this one is used",
            needs={Op.BARRIER},
            gives=PROGRAM_SPEC,
        ),
        Pass(
            "load-before-products",
            load_before_products,
            because="nothing that is loaded behind a product comes while that is multiplied",
            needs={Op.CONTRACT},
            gives=PROGRAM_SPEC,
        ),
        Pass(
            "pipeline",
            pipeline,
            because="tiles are copied while others are multiplied",
            needs={Op.CONTRACT},
            gives=PROGRAM_SPEC,
        ),
    ),
    takes=KERNEL_SPEC,
    gives=PROGRAM_SPEC,
)
