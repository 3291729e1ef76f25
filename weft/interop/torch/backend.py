"""`torch.compile(backend="weft")`: the entry point that PyTorch looks up by name.

AOTAutograd traces the forward and the backward graph, with writes taken out and most operators
decomposed into those of core ATen; each graph becomes one jitted function.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from weft.interop.torch.compiled import Compiled
from weft.interop.torch.graph import read_graph


def compile_graph(module: Any, example_inputs: Any) -> Compiled:
    """One graph of ATen operators as a function that Weft runs."""
    return Compiled(read_graph(module))


def weft(module: Any, example_inputs: Any, **options: Any) -> Any:
    """Compile what Dynamo captured. PyTorch calls this for `backend="weft"`."""
    common: Any = import_module("torch._dynamo.backends.common")
    return common.aot_autograd(
        fw_compiler=compile_graph,
        bw_compiler=compile_graph,
        inference_compiler=compile_graph,
        decompositions=_decompositions(),
    )(module, example_inputs)


def _decompositions() -> dict[Any, Any]:
    """Those of core ATen, without what Weft computes better as a whole."""
    torch: Any = import_module("torch")
    decomposed: dict[Any, Any] = dict(import_module("torch._decomp").core_aten_decompositions())
    aten = torch.ops.aten
    for kept in (
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        aten._softmax_backward_data.default,
        aten._log_softmax_backward_data.default,
        aten.embedding_dense_backward.default,
    ):
        decomposed.pop(kept, None)
    return decomposed
