"""The methods of this folder by their public names, which `Tensor` inherits."""

from __future__ import annotations

from weft.tensor.autodiff import hooks
from weft.tensor.linalg import reflections
from weft.tensor.methods import aliases, elementwise
from weft.tensor.pytorch_names import further, questions, shape_in_place
from weft.tensor.views import parts


class PytorchMethods:
    """What programs written for PyTorch ask of a tensor, and what they call it."""

    __slots__ = ()

    squeeze_, unsqueeze_, t_ = (
        shape_in_place.squeeze_,
        shape_in_place.unsqueeze_,
        shape_in_place.t_,
    )
    transpose_, swapaxes_ = shape_in_place.transpose_, shape_in_place.swapaxes_
    swapdims_, set_ = shape_in_place.swapdims_, shape_in_place.set_
    detach_, is_set_to = shape_in_place.detach_, shape_in_place.is_set_to

    is_nonzero, is_signed = questions.is_nonzero, questions.is_signed
    is_same_size, get_device = questions.is_same_size, questions.get_device
    is_conj = is_neg = is_distributed = is_inference = questions.never
    is_pinned = is_shared = is_coalesced = questions.never
    is_meta = is_mkldnn = is_mps = is_nested = property(questions.no_kind)
    is_quantized = is_sparse_csr = is_vulkan = is_xla = property(questions.no_kind)
    is_xpu = is_ipu = is_maia = is_mtia = property(questions.no_kind)
    is_cpu, layout = property(questions.is_cpu), property(questions.layout)
    name, output_nr = property(questions.name), property(questions.output_nr)
    grad_fn = property(questions.grad_fn)
    retains_grad = property(hooks.retains_grad)
    storage_offset, dim_order = questions.storage_offset, questions.dim_order
    pin_memory, share_memory_ = questions.pin_memory, questions.share_memory_

    fill_diagonal_, ger, new = further.fill_diagonal_, further.ger, further.new
    apply_, map_, map2_ = further.apply_, further.map_, further.map2_
    to_dense = further.to_dense
    bitwise_left_shift, bitwise_right_shift = elementwise.lshift, elementwise.rshift
    orgqr, ndimension = reflections.householder_product, aliases.dim
    unsafe_split_with_sizes = parts.split_with_sizes
