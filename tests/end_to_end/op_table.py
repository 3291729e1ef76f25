"""Every op of a tensor, as data. `test_ops.py` runs the rows on every device.

A row's name begins with the methods it covers, so a method without a row is found.
"""

from tests.end_to_end.op_row import Row
from tests.end_to_end.op_rows_arrangement import ARRANGEMENT, POOLS, SELECTION
from tests.end_to_end.op_rows_elementwise import ACTIVATIONS, BINARY, UNARY
from tests.end_to_end.op_rows_functional import FUNCTIONAL, PYTORCH_ALIASES
from tests.end_to_end.op_rows_functions import ALIASES, IN_PLACE, OPERANDS, SPECIAL
from tests.end_to_end.op_rows_linalg import DECOMPOSITIONS, PRODUCTS_OF_MATRICES, TRANSFORMS
from tests.end_to_end.op_rows_order import COUNTING, SCANS, SORTING
from tests.end_to_end.op_rows_reductions import LOSSES, PRODUCTS, REDUCTIONS
from tests.end_to_end.op_rows_shapes import CREATION, INDEXING, MOVEMENT, casts

FAMILIES: dict[str, tuple[Row, ...]] = {
    "unary": UNARY,
    "activations": ACTIVATIONS,
    "binary": BINARY,
    "special": SPECIAL,
    "operands": OPERANDS,
    "aliases": ALIASES,
    "in place": IN_PLACE,
    "casts": casts(),
    "movement": MOVEMENT,
    "arrangement": ARRANGEMENT,
    "indexing": INDEXING,
    "selection": SELECTION,
    "pools": POOLS,
    "reductions": REDUCTIONS,
    "scans": SCANS,
    "sorting": SORTING,
    "counting": COUNTING,
    "products": PRODUCTS,
    "products of matrices": PRODUCTS_OF_MATRICES,
    "decompositions": DECOMPOSITIONS,
    "transforms": TRANSFORMS,
    "losses": LOSSES,
    "functional": FUNCTIONAL,
    "aliases of PyTorch": PYTORCH_ALIASES,
    "creation": CREATION,
}

# Loops of hundreds of kernels, of ops that other rows run on every device: on the CPU alone.
LOOPS = frozenset(("decompositions",))

# Methods without a row, by the reason.
NOT_IN_THE_TABLE = {
    "no number comes out": (
        "data device dtype element_size from_blob from_dlpack from_numpy grad "
        "cpu cuda dim is_contiguous is_floating_point item nbytes ndim nelement numel numpy "
        "to_torch from_url is_cuda is_leaf is_sparse itemsize register_hook retain_grad "
        "stride realize replace requires_grad requires_grad_ shape size to_ tolist train "
        "training uop"
    ),
    "called by every row with a gradient": "backward gradient detach",
    "random or unset memory, tested in tests/unit/tensor": (
        "dropout empty empty_like glorot_uniform kaiming_normal kaiming_uniform manual_seed "
        "multinomial new_empty normal normal_ rand rand_like randint randn randn_like randperm "
        "scaled_uniform uniform uniform_ bernoulli bernoulli_ cauchy empty_permuted empty_strided "
        "exponential geometric log_normal new_empty_strided randint_like random_"
    ),
    "compared with PyTorch's own samples, in tests/opinfo": (
        "H addbmm addmv addr airy_ai alias_copy angle as_strided as_strided_copy "
        "as_strided_scatter bessel_j0 bessel_j1 bessel_y0 bessel_y1 block_diag broadcast_shapes "
        "broadcast_tensors bucketize byte cartesian_prod char chebyshev_polynomial_t "
        "chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w cholesky_inverse "
        "cholesky_solve combinations conj conj_physical constant_pad_nd corrcoef cov "
        "diagonal_copy diagonal_scatter dist dsplit entr erfcx expand_copy fill frexp geqrf "
        "hermite_polynomial_h hermite_polynomial_he histogram histogramdd householder_product "
        "hsplit i0 i0e i1 i1e igamma igammac index_reduce inner isreal laguerre_polynomial_l "
        "legendre_polynomial_p log_ndtr lu lu_factor lu_solve lu_unpack mH matrix_exp "
        "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 msort "
        "mvlgamma nanmedian nanquantile narrow_copy native_batch_norm native_dropout_backward "
        "native_group_norm native_layer_norm ndtr ndtri nextafter nonzero_static ormqr "
        "permute_copy pinverse polygamma positive real renorm resize_ resize_as_ resolve_conj "
        "resolve_neg scalar_tensor scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
        "select_copy select_scatter shifted_chebyshev_polynomial_t "
        "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
        "shifted_chebyshev_polynomial_w slice_copy slice_scatter spherical_bessel_j0 split_copy "
        "split_with_sizes split_with_sizes_copy squeeze_copy sum_to_size t_copy tensorinv "
        "tensorsolve transpose_copy trapezoid trapz triangular_solve unbind_copy unfold_copy "
        "unique_consecutive unsafe_chunk unsafe_split unsqueeze_copy vander vdot view_copy "
        "vsplit xlog1py zeta"
    ),
    "in place, compared with PyTorch in tests/unit/tensor/methods/test_in_place_names.py": (
        "absolute_ addbmm_ addmm_ addmv_ addr_ arccos_ arccosh_ arcsin_ arcsinh_ arctan2_ "
        "arctan_ arctanh_ baddbmm_ cumprod_ cumsum_ divide_ fix_ float_power_ floor_divide_ ge_ "
        "greater_ greater_equal_ gt_ i0_ igamma_ igammac_ index_reduce_ ldexp_ le_ less_ "
        "less_equal_ lt_ multiply_ mvlgamma_ negative_ nextafter_ not_equal_ polygamma_ renorm_ "
        "sgn_ subtract_ true_divide_"
    ),
    "complex numbers, tested in tests/unit/tensor/complexes": (
        "adjoint cdouble cfloat complex imag is_complex istft polar stft view_as_complex "
        "view_as_real"
    ),
    "tinygrad's names, tested in tests/unit/tensor/methods/test_tinygrad_names.py": (
        "batchnorm contiguous_backward hash is_param_ keccak max_shape newton_schulz pad_to "
        "shrink_to"
    ),
    "what PyTorch programs ask and call, tested in tests/unit/tensor/pytorch_names": (
        "apply_ bitwise_left_shift bitwise_left_shift_ bitwise_right_shift bitwise_right_shift_ "
        "cauchy_ conj_physical_ detach_ detach_copy dim_order exponential_ fill_diagonal_ "
        "geometric_ ger get_device grad_fn is_coalesced is_conj is_cpu is_distributed "
        "is_inference is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_neg is_nested "
        "is_nonzero is_pinned is_quantized is_same_size is_set_to is_shared is_signed "
        "is_sparse_csr is_vulkan is_xla is_xpu layout log_normal_ map2_ map_ name ndimension "
        "new orgqr output_nr pin_memory retains_grad set_ share_memory_ squeeze_ storage_offset "
        "swapaxes_ swapdims_ t_ to_dense transpose_ unsafe_split_with_sizes unsqueeze_ "
        "view_as_complex_copy view_as_real_copy"
    ),
    "symbolic sizes, tested in tests/unit/tensor/neural/test_symbolic_windows.py": "with_sizes",
    "of the array API standard, tested in tests/unit/array_api": "to_device",
    "on several devices, tested in tests/unit/tensor/test_shard.py": "shard shard_ shard_like",
    "a Python bool": "allclose equal",
}
