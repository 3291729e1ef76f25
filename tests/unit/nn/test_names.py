"""The names and arguments that programs for other frameworks use are those of `weft.nn`.

A row is a signature as those programs know it. Weft may have more arguments behind them.
"""

import inspect

import pytest

from weft import nn

LAYERS = """
BatchNorm(sz, eps=1e-05, affine=True, track_running_stats=True, momentum=0.1)
BatchNorm2d(sz, eps=1e-05, affine=True, track_running_stats=True, momentum=0.1)
BatchNorm3d(sz, eps=1e-05, affine=True, track_running_stats=True, momentum=0.1)
Conv1d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, \
bias=True)
Conv2d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, \
bias=True)
Conv3d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, \
bias=True)
ConvTranspose1d(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, \
dilation=1, groups=1, bias=True)
ConvTranspose2d(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, \
dilation=1, groups=1, bias=True)
Embedding(vocab_size, embed_size)
GroupNorm(num_groups, num_channels, eps=1e-05, affine=True)
InstanceNorm(num_features, eps=1e-05, affine=True)
LSTMCell(input_size, hidden_size, bias=True)
LayerNorm(normalized_shape, eps=1e-05, elementwise_affine=True)
LayerNorm2d(normalized_shape, eps=1e-05, elementwise_affine=True)
Linear(in_features, out_features, bias=True)
RMSNorm(dim, eps=1e-06, elementwise_affine=True)
Dropout(p=0.5)
MultiHeadAttention(embed_dim, num_heads)
GRU(input_size, hidden_size)
LSTM(input_size, hidden_size)
TransformerEncoderLayer(d_model, nhead)
DataLoader(dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0, \
collate_fn=None, pin_memory=False, drop_last=False)
"""
OPTIMIZERS = """
Adam(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-08, device=None, fused=None)
AdamW(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-08, weight_decay=0.01, device=None, fused=None)
LAMB(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-06, weight_decay=0.0, adam=False, device=None, \
fused=None)
LARS(params, lr=0.001, momentum=0.9, weight_decay=0.0001, ns_steps=0, ns_coefficients=None, \
nesterov=False, classic=True, pre_wd=True, tcoef=0.001, device=None, fused=None)
Muon(params, lr=0.001, momentum=0.95, weight_decay=0.1, ns_steps=5, \
ns_coefficients=(3.4445, -4.775, 2.0315), nesterov=True, device=None, fused=None)
Optimizer(params, lr, device=None, fused=None)
OptimizerGroup(*optimizers)
SGD(params, lr=0.001, momentum=0.0, weight_decay=0.0, nesterov=False, classic=False, \
device=None, fused=None)
Adagrad(params, lr=0.01)
RMSprop(params, lr=0.01)
Adafactor(params, lr=0.01)
Lion(params, lr=0.0001)
"""
STATE = """
get_parameters(obj)
get_state_dict(obj, prefix='', tensor_type=Tensor)
load_state_dict(model, state_dict, strict=True, verbose=True, consume=False, realize=True)
safe_load(fn)
safe_load_metadata(t)
safe_save(tensors, fn, metadata=None)
tar_extract(t)
torch_load(t)
zip_extract(t)
gguf_load(fn)
"""
DATASETS = """
cifar(device=None)
mnist(device=None, fashion=False)
"""
ROWS = [
    (module, row)
    for module, rows in (
        (nn, LAYERS), (nn.optim, OPTIMIZERS), (nn.state, STATE), (nn.datasets, DATASETS)
    )
    for row in rows.strip().splitlines()
]  # fmt: skip


@pytest.mark.parametrize(("module", "row"), ROWS, ids=[row.partition("(")[0] for _, row in ROWS])
def test_signature(module, row):
    name, _, rest = row.removesuffix(")").partition("(")
    assert name in module.__all__
    found = list(inspect.signature(getattr(module, name)).parameters.values())
    known = eval(f"lambda {rest}: 0", {"Tensor": nn.state.Tensor})
    wanted = list(inspect.signature(known).parameters.values())
    for theirs, ours in zip(wanted, found, strict=False):
        assert (ours.name, ours.kind) == (theirs.name, theirs.kind)
        if theirs.default is not inspect.Parameter.empty:
            assert ours.default == theirs.default
    assert len(found) >= len(wanted)
    for more in found[len(wanted) :]:
        assert more.default is not inspect.Parameter.empty or more.kind is more.VAR_KEYWORD
