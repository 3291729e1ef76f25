"""The public names, with the arguments that programs give: `test_api_names.py` looks for each.

A line is a signature. What it names may take more arguments, and have a default for one that is
asked for here; it may not be called otherwise, stand elsewhere, or mean another default.
"""

TOP = """
Tensor dtypes Device Context Variable GlobalCounters nn jit TinyJit function UOp config vmap grad
jvp vjp jacobian hessian checkpoint associative_reduce associative_scan scan
"""

CLASS_METHODS = """
arange(start, stop=None, step=1, dtype=None)
einsum(formula, *operands, dtype=None)
empty(*shape, device=None, dtype=None)
eye(n, m=None, dtype=None)
full(shape, fill_value, dtype=None, device=None, buffer=True)
glorot_uniform(*shape, **kwargs)
kaiming_normal(*shape, a=0.01, **kwargs)
kaiming_uniform(*shape, a=0.01, **kwargs)
linspace(start, stop, steps, dtype=None)
normal(*shape, mean=0.0, std=1.0, **kwargs)
ones(*shape, **kwargs)
rand(*shape, device=None, dtype=None, contiguous=True)
randint(*shape, low=0, high=10, dtype=dtypes.int, **kwargs)
randn(*shape, dtype=None, **kwargs)
randperm(n, device=None, dtype=dtypes.int, **kwargs)
scaled_uniform(*shape, **kwargs)
uniform(*shape, low=0.0, high=1.0, dtype=None, **kwargs)
zeros(*shape, **kwargs)
"""

PROPERTIES = "T device dtype grad ndim shape"

METHODS = """
abs()
acos()
acosh()
add(x, reverse=False)
all(axis=None, keepdim=False)
allclose(other, rtol=1e-05, atol=1e-08, equal_nan=False)
any(axis=None, keepdim=False)
argmax(axis=None, keepdim=False)
argmin(axis=None, keepdim=False)
argsort(dim=-1, descending=False)
asin()
asinh()
assign(x)
atan()
atanh()
avg_pool2d(kernel_size=(2, 2), stride=None, dilation=1, padding=0, ceil_mode=False,
    count_include_pad=True)
backward(gradient=None)
bfloat16()
binary_crossentropy(Y, reduction='mean')
binary_crossentropy_logits(Y, reduction='mean', pos_weight=None)
bitcast(dtype)
bitwise_and(x, reverse=False)
bitwise_not()
bitwise_or(x, reverse=False)
bitwise_xor(x, reverse=False)
bool()
cast(dtype)
cat(*args, dim=0)
ceil()
celu(alpha=1.0)
chunk(chunks, dim=0)
clamp(min_=None, max_=None)
clip(min_=None, max_=None)
clone(device=None)
contiguous(**kwargs)
conv2d(weight, bias=None, groups=1, stride=1, dilation=1, padding=0, dtype=None)
conv_transpose2d(weight, bias=None, groups=1, stride=1, dilation=1, padding=0,
    output_padding=0)
copysign(other)
cos()
cosh()
cross_entropy(Y, reduction='mean', label_smoothing=0.0)
cummax(axis=0)
cummin(axis=0)
cumprod(axis)
cumsum(axis=0)
data()
detach()
diag()
diagonal(offset=0, dim1=0, dim2=1)
div(x, reverse=False, rounding_mode=None)
dot(w, dtype=None)
double()
dropout(p=0.5)
element_size()
elu(alpha=1.0)
empty_like(dtype=None, device=None)
eq(x)
erf()
exp()
exp2()
expand(shape, *args)
flatten(start_dim=0, end_dim=-1)
flip(axis, *args)
float()
floor()
fmod(x)
full_like(fill_value, dtype=None, device=None, buffer=True)
gather(dim, index)
gelu(approximate='tanh')
gradient(*targets, gradient=None)
half()
hardsigmoid(alpha=0.16666666666666666, beta=0.5)
hardswish()
hardtanh(min_val=-1, max_val=1)
int()
interpolate(size, mode='linear', align_corners=False)
is_floating_point()
isclose(other, rtol=1e-05, atol=1e-08, equal_nan=False)
isfinite()
isinf(detect_positive=True, detect_negative=True)
isnan()
item()
layernorm(axis=-1, eps=1e-05)
leaky_relu(neg_slope=0.01)
lerp(end, weight)
linear(weight, bias=None, dtype=None)
log()
log10()
log2()
log_softmax(axis=-1, dtype=None)
logaddexp(other)
logcumsumexp(axis=0)
logical_not()
logsigmoid()
logsumexp(axis=None, keepdim=False)
long()
lshift(x, reverse=False)
manual_seed(seed=0)
masked_fill(mask, value)
masked_select(mask, size=None, fill_value=0)
matmul(x, reverse=False, dtype=None)
max(axis=None, keepdim=False)
max_pool2d(kernel_size=(2, 2), stride=None, dilation=1, padding=0, ceil_mode=False,
    return_indices=False)
max_unpool2d(indices, kernel_size=(2, 2), stride=None, dilation=1, padding=0, output_size=None)
maximum(x)
mean(axis=None, keepdim=False)
meshgrid(*args, indexing='ij')
min(axis=None, keepdim=False)
minimum(x)
mish()
mod(x, reverse=False)
mul(x, reverse=False)
multinomial(num_samples=1, replacement=False)
nbytes()
ne(x)
neg()
nll_loss(Y, weight=None, ignore_index=None, reduction='mean')
nonzero(size=None, fill_value=0)
normalize(p=2.0, dim=1, eps=1e-12)
numel()
numpy()
one_hot(num_classes)
ones_like(**kwargs)
pad(padding, mode='constant', value=0.0)
permute(order, *args)
pow(x, reverse=False)
prod(axis=None, keepdim=False, dtype=None)
qr()
quick_gelu()
rand_like(**kwargs)
randn_like(dtype=None, **kwargs)
realize(*lst, do_update_stats=True)
rearrange(formula, **sizes)
reciprocal()
relu()
relu6()
repeat(repeats, *args)
repeat_interleave(repeats, dim=None)
reshape(shape, *args)
roll(shifts, dims=None)
round()
rshift(x, reverse=False)
rsqrt()
scaled_dot_product_attention(key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
    enable_gqa=False)
scatter(dim, index, src, reduce=None)
scatter_reduce(dim, index, src, reduce, include_self=True)
selu(alpha=1.67326, gamma=1.0507)
sequential(ll)
shard(devices, axis=None)
shard_(devices, axis=None)
shard_like(y)
short()
shrink(arg)
sigmoid()
sign()
silu()
sin()
sinh()
size(dim=None)
softmax(axis=-1, dtype=None)
softmin(axis=-1, dtype=None)
softplus(beta=1.0)
softsign()
sort(dim=-1, descending=False)
sparse_categorical_crossentropy(Y, ignore_index=-1, label_smoothing=0.0, reduction='mean')
split(sizes, dim=0)
sqrt()
square()
squeeze(dim=None)
stack(*args, dim=0)
std(axis=None, keepdim=False, correction=1)
std_mean(axis=None, keepdim=False, correction=1)
sub(x, reverse=False)
sum(axis=None, keepdim=False, dtype=None)
svd(full_matrices=True)
swish()
tan()
tanh()
to(device)
to_(device)
tolist()
topk(k, dim=-1, largest=True, sorted_=True)
transpose(dim0=1, dim1=0)
tril(diagonal=0)
triu(diagonal=0)
trunc()
unflatten(dim, sizes)
unfold(dim, size, step)
unsqueeze(dim)
var(axis=None, keepdim=False, correction=1)
var_mean(axis=None, keepdim=False, correction=1)
view(shape, *args)
where(x, y)
zeros_like(**kwargs)
"""

# Names beyond those, whose arguments are as in PyTorch.
FURTHER = """
__array__ __dlpack__ from_dlpack from_blob from_numpy to_torch cholesky solve inv det slogdet
eigh lstsq pinv norm matrix_power bmm mv baddbmm addmm tensordot kron outer cross cdist fft
ifft rfft irfft unique searchsorted bincount histc quantile median kthvalue mode nanmean nansum
take take_along_dim put select narrow index_select index_add index_copy index_put
masked_scatter scatter_add isin aminmax argwhere logical_and logical_or logical_xor clamp_min
clamp_max addcmul addcdiv gcd lcm expm1 log1p atan2 hypot remainder frac sinc heaviside nan_to_num
signbit erfc erfinv lgamma digamma glu threshold tanhshrink movedim swapaxes fliplr flipud
rot90 tile broadcast_to atleast_1d atleast_2d atleast_3d hstack vstack dstack tensor_split
unbind diag_embed tril_indices triu_indices cumulative_trapezoid diff fft2 ifft2 rfft2 irfft2
"""

LAYERS = """
BatchNorm(sz, eps=1e-05, affine=True, track_running_stats=True, momentum=0.1)
BatchNorm2d(sz, eps=1e-05, affine=True, track_running_stats=True, momentum=0.1)
BatchNorm3d(sz, eps=1e-05, affine=True, track_running_stats=True, momentum=0.1)
Conv1d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
    bias=True)
Conv2d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
    bias=True)
Conv3d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
    bias=True)
ConvTranspose1d(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0,
    dilation=1, groups=1, bias=True)
ConvTranspose2d(in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0,
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
DataLoader(dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0,
    collate_fn=None, pin_memory=False, drop_last=False)
"""

OPTIMIZERS = """
Adam(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-08, device=None, fused=None)
AdamW(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-08, weight_decay=0.01, device=None,
    fused=None)
LAMB(params, lr=0.001, b1=0.9, b2=0.999, eps=1e-06, weight_decay=0.0, adam=False, device=None,
    fused=None)
LARS(params, lr=0.001, momentum=0.9, weight_decay=0.0001, ns_steps=0, ns_coefficients=None,
    nesterov=False, classic=True, pre_wd=True, tcoef=0.001, device=None, fused=None)
Muon(params, lr=0.001, momentum=0.95, weight_decay=0.1, ns_steps=5, ns_coefficients=(3.4445,
    -4.775, 2.0315), nesterov=True, device=None, fused=None)
Optimizer(params, lr, device=None, fused=None)
OptimizerGroup(*optimizers)
SGD(params, lr=0.001, momentum=0.0, weight_decay=0.0, nesterov=False, classic=False,
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

DTYPES = """
float16 half bfloat16 float32 float float64 double int8 char int16 short int32 int int64 long uint8
uchar uint16 ushort uint32 uint uint64 ulong bool fp8e4m3 fp8e5m2 fp8e4m3fnuz fp8e5m2fnuz
default_float default_int finfo is_float is_int is_unsigned min max
"""
