"""Which module has a function at the top of the package: `weft.__getattr__` asks here.

Those of `nn.functional` take the same arguments there and at the top of torch.
"""

from __future__ import annotations

from typing import Final

_BY_MODULE: Final = {
    "weft.nn.functional": """
        adaptive_avg_pool1d avg_pool1d bilinear channel_shuffle conv_tbc conv_transpose1d
        conv_transpose3d max_pool1d max_pool1d_with_indices max_pool3d native_channel_shuffle
        pairwise_distance pdist pixel_shuffle pixel_unshuffle rrelu rrelu_""",
    "weft.aten.windows": """
        bartlett_window blackman_window hamming_window hann_window kaiser_window""",
    "weft.aten.losses": """
        cosine_embedding_loss ctc_loss hinge_embedding_loss margin_ranking_loss poisson_nll_loss
        triplet_margin_loss""",
    "weft.aten.layers": """
        adaptive_max_pool1d affine_grid_generator alpha_dropout alpha_dropout_ batch_norm
        convolution dropout_ embedding embedding_bag embedding_renorm_ feature_alpha_dropout
        feature_alpha_dropout_ feature_dropout feature_dropout_ grid_sampler grid_sampler_2d
        grid_sampler_3d instance_norm native_dropout""",
    "weft.aten.recurrent": """
        gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell""",
    "weft.aten.sampling": "binomial poisson",
    "weft.aten.low_rank": "pca_lowrank svd_lowrank",
    "weft.aten.segments": "segment_reduce",
    "weft.aten.control": "cond while_loop",
    "weft.aten.host": """
        can_cast frobenius_norm from_file frombuffer norm_except_dim nuclear_norm sym_float sym_int
        sym_ite sym_max sym_min sym_not sym_sqrt sym_sum to_dlpack typename""",
    "weft.aten.switches": """
        clear_autocast_cache compiled_with_cxx11_abi get_default_device
        get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads
        init_num_threads is_anomaly_check_nan_enabled is_anomaly_enabled
        is_deterministic_algorithms_warn_only_enabled is_inference_mode_enabled is_storage
        is_vulkan_available is_warn_always_enabled set_anomaly_enabled set_default_device
        set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
        set_flush_denormal set_num_interop_threads set_warn_always""",
    "weft.linalg": "matrix_rank",
}
MODULE_OF: Final = {name: module for module, names in _BY_MODULE.items() for name in names.split()}
