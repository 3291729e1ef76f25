"""THE LIST of scheduling: from a tensor graph to kernels in order, and why each pass is there."""

from __future__ import annotations

from typing import Final

from weft.ir.ops import Op
from weft.ir.spec.ranged import RANGED_SPEC
from weft.ir.spec.schedule import SCHEDULE_SPEC
from weft.ir.spec.tensor import NORMALIZED_SPEC, REAL_SPEC, STORED_SPEC, TENSOR_SPEC
from weft.rewrite.phase import Pass, Phase
from weft.schedule.calls.inline_calls import inline_calls
from weft.schedule.calls.open_calls import open_calls
from weft.schedule.calls.outline import outline
from weft.schedule.calls.trim_calls import trim_calls
from weft.schedule.fuse.fuse_in_order import fuse_in_order
from weft.schedule.layout.align_factors import align_factors
from weft.schedule.layout.channels_last import channels_last
from weft.schedule.layout.narrow_results import narrow_results
from weft.schedule.layout.place_parts import place_parts
from weft.schedule.lower_complex import lower_complex
from weft.schedule.normalize import normalize
from weft.schedule.plan import plan_memory
from weft.schedule.reductions.block_scans import block_scans
from weft.schedule.reductions.exchange_sums import exchange_sums
from weft.schedule.reductions.order_contractions import order_contractions
from weft.schedule.reductions.parallelize_scatters import parallelize_scatters
from weft.schedule.reductions.scatters import store_scatters
from weft.schedule.reductions.split_reductions import split_reductions
from weft.schedule.shard.shard import shard
from weft.schedule.split import split_kernels

SHARD: Final = Phase(
    "shard",
    takes=TENSOR_SPEC,
    gives=TENSOR_SPEC,
    passes=(
        Pass(
            "shard",
            shard,
            because="a graph over several devices becomes one for each, and copies between them",
            gives=TENSOR_SPEC,
        ),
    ),
)

SCHEDULE: Final = Phase(
    "schedule",
    takes=TENSOR_SPEC,
    gives=SCHEDULE_SPEC,
    passes=(
        Pass(
            "lower-complex",
            lower_complex,
            because="a complex number is two real ones, and kernels compute with real numbers",
            needs={Op.COMPLEX},
            gives=REAL_SPEC,
        ),
        Pass(
            "outline",
            outline,
            because="values that differ in the memory they read alone are one program",
            gives=TENSOR_SPEC,
        ),
        Pass(
            "inline-calls",
            inline_calls,
            because="random numbers are calls of one body, and are fused with what reads them",
            needs={Op.CALL, Op.INLINE},
            gives=TENSOR_SPEC,
        ),
        Pass(
            "open-calls",
            open_calls,
            because="gradients of convolutions share the layout of the images that they are given",
            needs={Op.CALL},
            gives=TENSOR_SPEC,
        ),
        Pass(
            "normalize",
            normalize,
            because="constants are folded before they are copied into kernels",
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "trim-calls",
            trim_calls,
            because="a call runs by itself, whoever reads its results",
            needs={Op.CALL},
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "order-contractions",
            order_contractions,
            because="a sum of products of several factors takes the order with the least work",
            needs={Op.REDUCE},
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "channels-last",
            channels_last,
            because="matrix units read the channels of a pixel as rows, so images lie that way",
            needs={Op.REDUCE},
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "exchange-sums",
            exchange_sums,
            because="the slope of a softmax needs a sum of weights that the output has already",
            needs={Op.REDUCE},
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "align-factors",
            align_factors,
            because="matrix units are fed by copies whose rows begin at multiples of 16 bytes",
            needs={Op.REDUCE},
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "narrow-results",
            narrow_results,
            because="memory holds a sum in the type in which all read it",
            needs={Op.REDUCE},
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "parallelize-scatters",
            parallelize_scatters,
            because="a thread that reduces all updates waits for memory once for each",
            needs={Op.SCATTER},
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "split-reductions",
            split_reductions,
            because="a long reduction with few results leaves threads without work",
            needs={Op.REDUCE},
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "block-scans",
            block_scans,
            because="a scan is sequential, and a long one needs parts that run together",
            needs={Op.SCAN},
            gives=NORMALIZED_SPEC,
        ),
        Pass(
            "store-scatters",
            store_scatters,
            because="updates are reduced where they go, in memory, one after the other",
            needs={Op.SCATTER},
            gives=STORED_SPEC,
        ),
        Pass(
            "place-parts",
            place_parts,
            because="results that have memory anyway are stored where their sum has them",
            needs={Op.PAD},
            gives=STORED_SPEC,
        ),
        Pass(
            "fuse",
            fuse_in_order,
            because="shapes become ranges, and each value is computed where it is used or"
            " materialized, whichever costs less; writes get an order, or copies where they have"
            " none",
            gives=RANGED_SPEC,
        ),
        Pass(
            "split",
            split_kernels,
            because="what is left between memory and memory is a kernel",
            gives=SCHEDULE_SPEC,
        ),
        Pass(
            "plan",
            plan_memory,
            because="temporaries that do not live at the same time share memory",
            gives=SCHEDULE_SPEC,
        ),
    ),
)
