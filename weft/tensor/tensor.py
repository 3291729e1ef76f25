"""The user's object: the table of its methods, family by family.

Each family is a file of functions whose first argument is the tensor; this class gives them their
public names. A tensor is lazy: methods build a graph, and only those of `values.py` compute.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from weft.engine.disk import map_file
from weft.engine.realize import device_of
from weft.ir.dtypes import DType, dtypes
from weft.ir.layouts import layout_of
from weft.ir.movement import full as full_node
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.support.errors import ArgumentTypeError
from weft.tensor import writes
from weft.tensor.autodiff import gradients, hooks
from weft.tensor.autodiff.leaves import remember
from weft.tensor.checks import symbolic_number
from weft.tensor.complexes import frames
from weft.tensor.complexes import functions as complex_functions
from weft.tensor.complexes import parts as complexes
from weft.tensor.core import Core
from weft.tensor.create import creation, like, random, random_state, sampling
from weft.tensor.host import convert, interop, values
from weft.tensor.host.data_method import DataMethod
from weft.tensor.host.host_data import from_host
from weft.tensor.indexing import (
    counting,
    extremes,
    histograms,
    indexing,
    order_statistics,
    scatters,
    selection,
    sorting,
)
from weft.tensor.keywords import accept_other_names
from weft.tensor.linalg import combined as linalg_combined
from weft.tensor.linalg import lu as linalg_lu
from weft.tensor.linalg import products as linalg_products
from weft.tensor.linalg import qr as linalg_qr
from weft.tensor.linalg import reflections as linalg_reflections
from weft.tensor.linalg import solve as linalg_solve
from weft.tensor.linalg import spectral as linalg_spectral
from weft.tensor.linalg import triangular as linalg_triangular
from weft.tensor.methods import (
    aliases,
    angles,
    arithmetic,
    arrangement,
    bits,
    elementwise,
    fourier,
    in_place,
    joining,
    limits,
    logic,
    matmul,
    movement,
    padding,
    reduce,
    scan,
    sharding,
    special,
    statistics,
    tinygrad_names,
    unary,
)
from weft.tensor.methods.rearrange import rearrange
from weft.tensor.neural import (
    activations,
    convolution,
    functional,
    losses,
    native,
    normalization,
    pools,
)
from weft.tensor.neural.interpolate import interpolate
from weft.tensor.pytorch_names.methods import PytorchMethods
from weft.tensor.special import hashes
from weft.tensor.special.methods import SpecialMethods
from weft.tensor.storage import Storage, owner_of
from weft.tensor.training import train
from weft.tensor.views import copies, parts


class Tensor(PytorchMethods, SpecialMethods, Core):
    """Numbers of one dtype in a box of some shape, on a device; computed when asked for.

    >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="PYTHON")
    >>> y = (x @ x + 1).relu()
    >>> y
    <Tensor (2, 2) float32 PYTHON lazy>
    >>> y.tolist()
    [[8.0, 11.0], [16.0, 23.0]]
    """

    __slots__ = ()
    # Whether dropout and batch statistics behave as in training.
    training: ClassVar[bool] = False
    train = train
    # NumPy leaves operators between its arrays and tensors to the tensor.
    __array_ufunc__ = None

    def __init__(
        self,
        data: Any,
        device: str | None = None,
        dtype: DType | str | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        self._steps = ()
        self._seen = self._grad = self._pair = self._wants = None
        self._storage = _storage(data, device, dtype)
        remember(self, requires_grad)

    # Operators.
    __add__, __radd__ = elementwise.plus, elementwise.reflected_plus
    __sub__, __rsub__ = elementwise.minus, elementwise.reflected_minus
    __mul__, __rmul__ = elementwise.times, elementwise.reflected_times
    __rdiv__ = elementwise.reflected_over
    __truediv__, __rtruediv__ = elementwise.over, elementwise.reflected_over
    __floordiv__, __rfloordiv__ = elementwise.floor_over, elementwise.reflected_floor_over
    __mod__, __rmod__ = elementwise.modulo, elementwise.reflected_modulo
    __pow__, __rpow__ = elementwise.raised, elementwise.reflected_raised
    __matmul__, __rmatmul__ = matmul.at, matmul.reflected_at
    __and__, __rand__ = elementwise.and_, elementwise.reflected_and
    __or__, __ror__ = elementwise.or_, elementwise.reflected_or
    __xor__, __rxor__ = elementwise.xor, elementwise.reflected_xor
    __lshift__, __rlshift__ = elementwise.shifted_left, elementwise.reflected_shifted_left
    __rshift__, __rrshift__ = elementwise.shifted_right, elementwise.reflected_shifted_right
    __iadd__, __isub__ = elementwise.in_place_plus, elementwise.in_place_minus
    __imul__, __itruediv__ = elementwise.in_place_times, elementwise.in_place_over
    __ifloordiv__, __imod__ = elementwise.in_place_floor_over, elementwise.in_place_modulo
    __ipow__, __imatmul__ = elementwise.in_place_raised, matmul.in_place_at
    __iand__, __ior__ = elementwise.in_place_and, elementwise.in_place_or
    __ixor__ = elementwise.in_place_xor
    __ilshift__ = elementwise.in_place_shifted_left
    __irshift__ = elementwise.in_place_shifted_right
    __lt__, __gt__ = elementwise.less, elementwise.greater
    __le__, __ge__ = elementwise.less_equal, elementwise.greater_equal
    __eq__ = elementwise.equals  # type: ignore[assignment]
    __ne__ = elementwise.differs  # type: ignore[assignment]
    __hash__ = Core.__hash__
    __neg__, __pos__, __invert__ = unary.neg, unary.positive, unary.bitwise_not
    __abs__, __round__, __floor__ = unary.abs_, unary.round_, unary.floor
    __ceil__, __trunc__ = unary.ceil, unary.trunc
    __getitem__, __setitem__, __iter__ = indexing.getitem, indexing.setitem, indexing.iterate
    __bool__, __len__ = values.truth, values.length
    __format__ = values.formatted
    __int__, __float__, __index__ = values.as_int, values.as_float, values.as_index
    __array__, __dlpack__ = values.array, interop.to_dlpack
    __buffer__ = values.buffer
    __dlpack_device__, __reduce__ = interop.dlpack_device, interop.reduced
    __array_namespace__, to_device = interop.array_namespace, interop.to_device
    __copy__, __deepcopy__ = interop.copied, interop.deep_copied

    # Two operands.
    add, sub, mul, div = elementwise.add, elementwise.sub, elementwise.mul, elementwise.div
    mod, fmod, remainder = elementwise.mod, elementwise.fmod, elementwise.remainder
    pow, where = elementwise.pow_, elementwise.where
    maximum, minimum = elementwise.maximum, elementwise.minimum
    bitwise_and, bitwise_or = elementwise.bitwise_and, elementwise.bitwise_or
    bitwise_xor, lshift, rshift = elementwise.bitwise_xor, elementwise.lshift, elementwise.rshift
    eq, ne = elementwise.eq, elementwise.ne
    lt, gt, le, ge = elementwise.lt, elementwise.gt, elementwise.le, elementwise.ge
    less, greater, not_equal = elementwise.lt, elementwise.gt, elementwise.ne
    less_equal, greater_equal = elementwise.le, elementwise.ge
    subtract, multiply = elementwise.sub, elementwise.mul
    divide, true_divide = elementwise.div, elementwise.div
    floor_divide, rsub = elementwise.floor_divide, arithmetic.rsub
    logical_and, logical_or = logic.logical_and, logic.logical_or
    logical_xor, heaviside = logic.logical_xor, logic.heaviside
    clamp_min, clamp_max = limits.clamp_min, limits.clamp_max
    addcmul, addcdiv = arithmetic.addcmul, arithmetic.addcdiv
    atan2, arctan2, hypot = angles.atan2, angles.atan2, angles.hypot
    fmax, fmin, ldexp = limits.fmax, limits.fmin, arithmetic.ldexp
    float_power, logaddexp2 = arithmetic.float_power, arithmetic.logaddexp2
    xlogy, gcd, lcm = special.xlogy, arithmetic.gcd, arithmetic.lcm
    copysign, lerp, logaddexp = unary.copysign, activations.lerp, activations.logaddexp
    masked_fill, isclose = activations.masked_fill, activations.isclose
    allclose = activations.allclose

    # One operand.
    neg, abs, sign, square = unary.neg, unary.abs_, unary.sign, unary.square
    sqrt, rsqrt, reciprocal = unary.sqrt, unary.rsqrt, unary.reciprocal
    exp, exp2, expm1 = unary.exp, unary.exp2, unary.expm1
    log, log2, log10, log1p = unary.log, unary.log2, unary.log10, unary.log1p
    sin, cos, tan = unary.sin, unary.cos, angles.tan
    asin, acos, atan = angles.asin, angles.acos, angles.atan
    sinh, cosh, tanh = angles.sinh, angles.cosh, unary.tanh
    asinh, acosh, atanh, erf = angles.asinh, angles.acosh, angles.atanh, unary.erf
    floor, ceil, trunc = unary.floor, unary.ceil, unary.trunc
    round, frac = unary.round_, unary.frac
    isnan, isinf, isfinite, signbit = unary.isnan, unary.isinf, unary.isfinite, unary.is_negative
    bitwise_not, logical_not = unary.bitwise_not, unary.logical_not

    erfc, erfinv, logit = special.erfc, special.erfinv, special.logit
    lgamma, digamma, sinc = special.lgamma, special.digamma, special.sinc
    deg2rad, rad2deg = angles.deg2rad, angles.rad2deg
    isposinf, isneginf = logic.isposinf, logic.isneginf
    nan_to_num = limits.nan_to_num
    negative, absolute, fix, sgn = unary.neg, unary.abs_, unary.trunc, unary.sign
    arcsin, arccos, arctan = angles.asin, angles.acos, angles.atan
    arcsinh, arccosh, arctanh = angles.asinh, angles.acosh, angles.atanh

    # Activations.
    relu, relu6, leaky_relu = activations.relu, activations.relu6, activations.leaky_relu
    sigmoid, logsigmoid = activations.sigmoid, activations.logsigmoid
    hardsigmoid, hardswish = activations.hardsigmoid, activations.hardswish
    hardtanh, silu, swish = activations.hardtanh, activations.silu, activations.silu
    elu, celu, selu = activations.elu, activations.celu, activations.selu
    gelu, quick_gelu, mish = activations.gelu, activations.quick_gelu, activations.mish
    softplus, softsign = activations.softplus, activations.softsign
    clamp, clip = activations.clamp, activations.clamp
    glu, threshold, tanhshrink = activations.glu, activations.threshold, activations.tanhshrink
    softshrink, hardshrink = activations.softshrink, activations.hardshrink
    prelu, log_sigmoid = activations.prelu, activations.logsigmoid

    # Movement.
    reshape, view, expand = movement.reshape, aliases.view, movement.expand
    permute, transpose, flip = movement.permute, movement.transpose, movement.flip
    T = property(movement.reversed_axes)
    shrink, pad, movedim = movement.shrink, padding.pad, movement.movedim
    squeeze, unsqueeze = movement.squeeze, movement.unsqueeze
    flatten, unflatten = movement.flatten, movement.unflatten
    repeat, repeat_interleave = movement.repeat, movement.repeat_interleave
    roll, unfold, diagonal = movement.roll, movement.unfold, movement.diagonal
    broadcast_to, with_sizes = movement.broadcast_to, copies.with_sizes
    cat, stack, meshgrid = joining.cat, joining.stack, joining.meshgrid
    split, chunk = joining.split, joining.chunk
    tril, triu, one_hot = joining.tril, joining.triu, joining.one_hot
    mT = property(movement.last_axes_swapped)  # noqa: N815 -- the public name
    t, swapaxes, swapdims = movement.transposed, movement.transpose, movement.transpose
    moveaxis, ravel = movement.movedim, movement.flatten
    reshape_as, view_as, expand_as = movement.reshape_as, movement.reshape_as, movement.expand_as
    fliplr, flipud, rot90 = arrangement.fliplr, arrangement.flipud, arrangement.rot90
    tile, rearrange, unbind = arrangement.tile, rearrange, arrangement.unbind
    atleast_1d, atleast_2d = arrangement.atleast_1d, arrangement.atleast_2d
    atleast_3d, tensor_split = arrangement.atleast_3d, arrangement.tensor_split
    hstack, vstack, dstack = arrangement.hstack, arrangement.vstack, arrangement.dstack
    row_stack, column_stack = arrangement.vstack, arrangement.column_stack
    concat, concatenate = joining.cat, joining.cat
    diag, diag_embed, diagflat = arrangement.diag, arrangement.diag_embed, arrangement.diagflat
    gather, scatter = indexing.gather, scatters.scatter
    scatter_reduce, scatter_add = scatters.scatter_reduce, selection.scatter_add
    take, take_along_dim, put = selection.take, selection.take_along_dim, selection.put
    select, narrow, index_select = selection.select, selection.narrow, selection.index_select
    index_add, index_copy = selection.index_add, selection.index_copy
    index_copy_ = selection.index_copy_
    index_put, index_fill = selection.index_put, selection.index_fill
    masked_scatter = selection.masked_scatter
    slice, slice_scatter = parts.slice_, parts.slice_scatter
    select_scatter, diagonal_scatter = parts.select_scatter, parts.diagonal_scatter
    as_strided, as_strided_scatter = parts.as_strided, parts.as_strided_scatter
    as_strided_copy, alias_copy = parts.as_strided, copies.same
    hsplit, vsplit, dsplit = parts.hsplit, parts.vsplit, parts.dsplit
    split_with_sizes, unsafe_split = parts.split_with_sizes, joining.split
    unsafe_chunk, combinations = joining.chunk, parts.combinations
    broadcast_tensors = staticmethod(parts.broadcast_tensors)
    broadcast_shapes = staticmethod(parts.broadcast_shapes)
    cartesian_prod = staticmethod(parts.cartesian_prod)
    positive, resolve_conj, resolve_neg = copies.same, copies.same, copies.same
    sum_to_size = copies.sum_to_size
    real, imag = property(complexes.real), property(complexes.imag)
    conj, conj_physical, adjoint = complexes.conj, complexes.conj, complexes.adjoint
    H = mH = property(complexes.adjoint)  # noqa: N815 -- the public names
    angle, isreal, sgn = complexes.angle, complexes.isreal, complexes.sgn
    is_complex, view_as_real = complexes.is_complex, complexes.view_as_real
    view_as_complex = complexes.view_as_complex
    complex = staticmethod(complexes.complex_of_parts)
    polar = staticmethod(complexes.polar)
    stft, istft = frames.stft, frames.istft
    index_reduce, renorm = histograms.index_reduce, histograms.renorm

    # Reductions and products.
    sum, prod, mean = reduce.sum_, reduce.prod, statistics.mean
    max, min = extremes.max_, extremes.min_
    amax, amin, count_nonzero = reduce.amax, reduce.amin, reduce.count_nonzero
    any, all = reduce.any_, reduce.all_
    argmax, argmin = reduce.argmax, reduce.argmin
    var, std, var_mean, std_mean = (
        statistics.var,
        statistics.std,
        statistics.var_mean,
        statistics.std_mean,
    )
    softmax, log_softmax, softmin = (
        normalization.softmax,
        normalization.log_softmax,
        normalization.softmin,
    )
    logsumexp, layernorm, normalize = (
        normalization.logsumexp,
        normalization.layernorm,
        normalization.normalize,
    )
    cumsum, cumprod, logcumsumexp = scan.cumsum, scan.cumprod, scan.logcumsumexp
    cummax, cummin, diff = scan.cummax, scan.cummin, scan.diff
    cumulative_trapezoid = scan.cumulative_trapezoid
    sort, argsort, topk = sorting.sort, sorting.argsort, sorting.topk
    median, kthvalue = order_statistics.median, order_statistics.kthvalue
    mode, quantile = order_statistics.mode, order_statistics.quantile
    searchsorted, isin, unique = counting.searchsorted, counting.isin, counting.unique
    nonzero, argwhere = counting.nonzero, counting.argwhere
    masked_select, bincount, histc = counting.masked_select, counting.bincount, counting.histc
    bucketize, histogram = histograms.bucketize, histograms.histogram
    histogramdd, msort = histograms.histogramdd, histograms.msort
    unique_consecutive = histograms.unique_consecutive
    nanmedian, nanquantile = histograms.nanmedian, histograms.nanquantile
    nonzero_static = histograms.nonzero_static
    trapezoid = trapz = histograms.trapezoid
    aminmax, nanmean, nansum = reduce.aminmax, statistics.nanmean, reduce.nansum
    dot, linear, einsum = matmul.dot, matmul.linear, classmethod(matmul.einsum)
    scaled_dot_product_attention, mm = matmul.scaled_dot_product_attention, matmul.mm
    matmul = matmul.matmul
    bmm, mv, outer = linalg_products.bmm, linalg_products.mv, linalg_products.outer
    addmm, baddbmm = linalg_products.addmm, linalg_products.baddbmm
    tensordot, kron = linalg_products.tensordot, linalg_products.kron
    cross, trace, vecdot = linalg_products.cross, linalg_products.trace, linalg_products.vecdot
    norm, matrix_norm = linalg_products.norm, linalg_products.matrix_norm
    cdist, matrix_power = linalg_products.cdist, linalg_products.matrix_power
    inv, solve = linalg_solve.inv, linalg_solve.solve
    det, slogdet = linalg_solve.det, linalg_solve.slogdet
    logdet, inverse = linalg_solve.logdet, linalg_solve.inv
    cholesky, qr = linalg_triangular.cholesky, linalg_qr.qr
    solve_triangular = linalg_triangular.solve_triangular
    eigh, svd = linalg_spectral.eigh, linalg_spectral.svd
    pinv, lstsq = linalg_spectral.pinv, linalg_spectral.lstsq
    pinverse = linalg_spectral.pinv
    lu, lu_factor = linalg_lu.lu, linalg_lu.lu_factor
    lu_solve = linalg_lu.solve_by_factors
    lu_unpack, triangular_solve = linalg_lu.lu_unpack, linalg_lu.triangular_solve
    cholesky_solve = linalg_lu.cholesky_solve
    cholesky_inverse = linalg_lu.cholesky_inverse
    geqrf, ormqr = linalg_reflections.geqrf, linalg_reflections.ormqr
    householder_product = linalg_reflections.householder_product
    addmv, addr, addbmm = linalg_combined.addmv, linalg_combined.addr, linalg_combined.addbmm
    vdot, inner = linalg_combined.vdot, linalg_combined.inner
    block_diag, matrix_exp = linalg_combined.block_diag, linalg_combined.matrix_exp
    tensorinv, tensorsolve = linalg_combined.tensorinv, linalg_combined.tensorsolve
    vander, dist = linalg_combined.vander, linalg_combined.dist
    cov, corrcoef = linalg_combined.cov, linalg_combined.corrcoef
    fft, ifft, rfft, irfft = fourier.fft, fourier.ifft, fourier.rfft, fourier.irfft
    fft2, ifft2, rfft2, irfft2 = fourier.fft2, fourier.ifft2, fourier.rfft2, fourier.irfft2
    conv2d, conv_transpose2d = convolution.conv2d, convolution.conv_transpose2d
    max_pool2d, avg_pool2d = pools.max_pool2d, pools.avg_pool2d
    max_unpool2d, interpolate = pools.max_unpool2d, interpolate
    adaptive_avg_pool2d = pools.adaptive_avg_pool2d
    adaptive_max_pool2d = pools.adaptive_max_pool2d
    sequential = convolution.sequential
    native_layer_norm, native_group_norm = native.native_layer_norm, native.native_group_norm
    native_batch_norm, constant_pad_nd = native.native_batch_norm, native.constant_pad_nd
    native_dropout_backward = native.native_dropout_backward
    conv1d, conv3d = functional.conv1d, functional.conv3d
    layer_norm, rms_norm = functional.layer_norm, functional.rms_norm
    group_norm = functional.group_norm
    cross_entropy, nll_loss = losses.cross_entropy, losses.nll_loss
    sparse_categorical_crossentropy = losses.sparse_categorical_crossentropy
    binary_crossentropy = losses.binary_crossentropy
    binary_cross_entropy = losses.binary_crossentropy
    binary_crossentropy_logits = losses.binary_crossentropy_logits
    binary_cross_entropy_with_logits = losses.binary_crossentropy_logits
    mse_loss, l1_loss, kl_div = losses.mse_loss, losses.l1_loss, losses.kl_div
    huber_loss, smooth_l1_loss = losses.huber_loss, losses.smooth_l1_loss
    cosine_similarity = losses.cosine_similarity

    # Creation.
    full = classmethod(creation.full)
    zeros = classmethod(creation.zeros)
    ones = classmethod(creation.ones)
    empty = classmethod(creation.empty)
    arange = classmethod(creation.arange)
    linspace = classmethod(creation.linspace)
    logspace = classmethod(creation.logspace)
    eye = classmethod(creation.eye)
    tril_indices = classmethod(creation.tril_indices)
    triu_indices = classmethod(creation.triu_indices)
    full_like, zeros_like = creation.full_like, creation.zeros_like
    ones_like, empty_like = creation.ones_like, creation.empty_like
    manual_seed = staticmethod(random_state.manual_seed)
    rand = classmethod(random.rand)
    randn = classmethod(random.randn)
    randint = classmethod(random.randint)
    randperm = classmethod(random.randperm)
    multinomial = random.multinomial
    uniform = classmethod(random.uniform)
    normal = classmethod(random.normal)
    scaled_uniform = classmethod(random.scaled_uniform)
    glorot_uniform = classmethod(random.glorot_uniform)
    kaiming_uniform = classmethod(random.kaiming_uniform)
    kaiming_normal = classmethod(random.kaiming_normal)
    bernoulli, bernoulli_ = sampling.bernoulli, sampling.bernoulli_
    exponential, cauchy = sampling.exponential, sampling.cauchy
    geometric, log_normal = sampling.geometric, sampling.log_normal
    random_, randint_like = sampling.random_, sampling.randint_like
    empty_strided = classmethod(sampling.empty_strided)
    empty_permuted = classmethod(sampling.empty_strided)
    scalar_tensor = classmethod(sampling.scalar_tensor)
    new_empty_strided = sampling.new_empty_strided
    rand_like, randn_like, dropout = random.rand_like, random.randn_like, random.dropout

    # By tinygrad's names.
    is_param_, contiguous_backward = tinygrad_names.is_param_, tinygrad_names.contiguous_backward
    shrink_to, pad_to = tinygrad_names.shrink_to, tinygrad_names.pad_to
    max_shape = property(tinygrad_names.max_shape)
    from_url = classmethod(tinygrad_names.from_url)
    batchnorm, newton_schulz = tinygrad_names.batchnorm, tinygrad_names.newton_schulz
    keccak, hash = hashes.keccak, hashes.hash_

    # Values, conversions, writes, gradients.
    from_numpy = classmethod(interop.from_numpy)
    from_blob = classmethod(interop.from_blob)
    from_dlpack = classmethod(interop.from_dlpack)
    to_torch = interop.to_torch
    realize, numpy, item = values.realize, values.numpy, values.item
    tolist, data = values.tolist, DataMethod()
    cast, bitcast = convert.cast, bits.bitcast
    bool, half, bfloat16 = convert.to_bool, convert.to_half, convert.to_bfloat16
    float, double = convert.to_float, convert.to_double
    cfloat, cdouble = convert.to_cfloat, convert.to_cdouble
    byte, char = convert.to_byte, convert.to_char
    short, int, long = convert.to_short, convert.to_int, convert.to_long
    to, to_, contiguous, clone = convert.to, convert.to_in_place, convert.contiguous, convert.clone
    shard, shard_, shard_like = sharding.shard, sharding.shard_, sharding.shard_like
    detach, numel, nbytes, size = convert.detach, convert.numel, convert.nbytes, convert.size
    dim, nelement, equal = aliases.dim, convert.numel, aliases.equal
    cpu, cuda, is_contiguous = aliases.cpu, aliases.cuda, aliases.is_contiguous
    type, type_as, stride = aliases.type_, aliases.type_as, aliases.stride
    is_cuda, is_sparse = property(aliases.is_cuda), property(aliases.is_sparse)
    is_leaf, itemsize = property(aliases.is_leaf_), property(convert.element_size)
    register_hook, retain_grad = hooks.register_hook, hooks.retain_grad
    new_zeros, new_ones = like.new_zeros, like.new_ones
    new_full, new_empty = like.new_full, like.new_empty
    new_tensor = like.new_tensor
    element_size, is_floating_point = convert.element_size, convert.is_floating_point
    fill, resize_, resize_as_ = in_place.fill, in_place.resize_, in_place.resize_as_
    fill_, zero_, copy_ = in_place.fill_, in_place.zero_, in_place.copy_
    uniform_, normal_ = in_place.uniform_, in_place.normal_
    assign, replace = writes.assign, writes.replace
    _write, _update = writes.write, writes.update
    _require_writable = writes.require_writable
    _require_no_expand = writes.require_no_expand
    backward, gradient = gradients.backward, gradients.gradient
    requires_grad_ = gradients.set_requires_grad


complex_functions.attach(Tensor)
in_place.attach(Tensor)
copies.attach(Tensor)
accept_other_names(Tensor)


def _storage(data: Any, device: str | None, dtype: DType | str | None) -> Storage:
    """The storage of a new tensor with this data."""
    if isinstance(data, Tensor):
        moved = data.to(device)
        return (moved.clone() if dtype is None else moved.cast(dtype).clone())._storage
    if isinstance(data, Path):
        return _file(data, device, dtype)
    if isinstance(device, int):
        raise ArgumentTypeError(
            f"Tensor: the second argument is a device, not {device}",
            rule="Tensor(data, device, dtype) makes a tensor of data",
            fix=f"write Tensor.empty({data}, {device}, ...) for a tensor of a shape",
        )
    name = creation.device_name(device)
    if isinstance(data, UOp) and data.dtype is dtypes.index:
        number = symbolic_number("Tensor", data, convert.dtype_of(dtype, dtypes.default_int))
        return Storage(number, name)
    if isinstance(data, UOp):
        if dtype is not None and convert.dtype_of(dtype, data.dtype) is not data.dtype:
            data = data.cast(convert.dtype_of(dtype, data.dtype))
        if data.op == Op.BUFFER and (owner := owner_of(data)) is not None:
            return owner
        layout = layout_of(data)
        return Storage(data, device_of(data) if layout is None else layout.devices)
    if data is None:  # no elements, as in tinygrad
        return Storage(full_node(dtypes.default_float, 0.0, (0,)), name)
    if isinstance(data, np.generic):  # some are Python floats too, and have a dtype all the same
        data = np.asarray(data)
    if isinstance(data, (bool, int, float, complex)):
        return Storage(creation.scalar_node(data, dtype), name)
    target = None if dtype is None else convert.dtype_of(dtype, dtypes.void)
    return Storage(from_host(data, target, name), name)


def _file(path: Path, device: str | None, dtype: DType | str | None) -> Storage:
    """A file as it is, on DISK unless a device is named."""
    node = map_file(str(path))
    made = Tensor._value(node, node.arg[2])
    return (made if dtype is None else made.bitcast(dtype)).to(device)._storage
