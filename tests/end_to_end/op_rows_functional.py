"""Rows of methods that are functions of torch.nn.functional, and of PyTorch's aliases."""

from typing import Any

from tests.end_to_end.op_row import EVERY, FUNCTION, NUMBERS, PRECISE, SUM, Row, nn, pt

PAIR = (((4, 5), (4, 5)), ((4, 5), (1, 5)))


def distance(name: str, ours: Any, theirs: Any, **changes: Any) -> Row:
    """A loss of two tensors of numbers."""
    row = Row(name, ours, ("numbers", "unit"), PAIR[:1], theirs, PRECISE, True, SUM, True)
    return row._replace(**changes)


def weighted(x: Any, y: Any, w: Any) -> Any:
    return x.cross_entropy(y, weight=(w + 1).cast(x.dtype), ignore_index=2, label_smoothing=0.25)


def weighted_peer(x: Any, y: Any, w: Any) -> Any:
    function = nn(
        "cross_entropy", weight=(w + 1).to(x.dtype), ignore_index=2, label_smoothing=0.25
    )
    return function(x, y)


def probabilities(function: Any) -> Any:
    """A function of probabilities of a softmax, and of other ones."""
    return lambda x, y: function(x.log_softmax(-1), y.softmax(-1))


FUNCTIONAL = (
    distance("mse_loss", lambda x, y: x.mse_loss(y), nn("mse_loss")),
    distance("l1_loss", lambda x, y: x.l1_loss(y, "sum"), nn("l1_loss", reduction="sum")),
    distance(
        "huber_loss",
        lambda x, y: x.huber_loss(y, "none", delta=0.75),
        nn("huber_loss", reduction="none", delta=0.75),
    ),
    distance(
        "smooth_l1_loss",
        lambda x, y: (x.smooth_l1_loss(y, beta=0.5), x.smooth_l1_loss(y, beta=0.0)),
        lambda x, y: (nn("smooth_l1_loss", beta=0.5)(x, y), nn("smooth_l1_loss", beta=0.0)(x, y)),
    ),
    distance(
        "kl_div",
        probabilities(lambda x, y: (x.kl_div(y), x.kl_div(y.log(), "batchmean", log_target=True))),
        probabilities(
            lambda x, y: (
                nn("kl_div")(x, y),
                nn("kl_div", reduction="batchmean", log_target=True)(x, y.log()),
            )
        ),
        ulps=64,
    ),
    distance(
        "cosine_similarity",
        lambda x, y: x.cosine_similarity(y, dim=0),
        nn("cosine_similarity", dim=0),
    ),
    Row(
        "binary_cross_entropy binary_cross_entropy_with_logits",
        lambda x, y: (
            x.sigmoid().binary_cross_entropy(y, reduction="none"),
            x.binary_cross_entropy_with_logits(target=y),
        ),
        ("unit", "unit"),
        PAIR[:1],
        lambda x, y: (
            nn("binary_cross_entropy", reduction="none")(x.sigmoid(), y.clamp(0, 1)),
            nn("binary_cross_entropy_with_logits")(x, y.clamp(0, 1)),
        ),
        PRECISE,
        ulps=SUM,
        of_largest=True,
    )._replace(
        ours=lambda x, y: (
            x.sigmoid().binary_cross_entropy(y.clamp(0, 1), reduction="none"),
            x.binary_cross_entropy_with_logits(target=y.clamp(0, 1)),
        )
    ),
    Row(
        "cross_entropy of weighted classes",
        weighted,
        ("numbers", "below 3", "below 4"),
        (((6, 3), (6,), (3,)), ((4, 3, 2), (4, 2), (3,))),
        weighted_peer,
        PRECISE,
        True,
        SUM,
        True,
    ),
    Row(
        "cross_entropy of probabilities",
        lambda x, y, w: x.cross_entropy(y.softmax(1), weight=w, label_smoothing=0.25),
        ("numbers", "numbers", "positive"),
        (((4, 3, 2), (4, 3, 2), (3,)),),
        lambda x, y, w: nn("cross_entropy", weight=w, label_smoothing=0.25)(x, y.softmax(1)),
        PRECISE,
        True,
        SUM,
        True,
    ),
    Row(
        "conv1d",
        lambda x, w, b: x.conv1d(w, b, 2, 1, 2, 2),
        ("numbers", "unit", "unit"),
        (((2, 4, 9), (6, 2, 3), (6,)),),
        nn("conv1d", stride=2, padding=1, dilation=2, groups=2),
        has_gradient=True,
        ulps=2 * SUM,
        of_largest=True,
    ),
    Row(
        "conv3d",
        lambda x, w: x.conv3d(w, padding=1),
        ("numbers", "unit"),
        (((1, 2, 3, 4, 3), (3, 2, 2, 3, 2)),),
        nn("conv3d", padding=1),
        has_gradient=True,
        ulps=4 * SUM,
        of_largest=True,
    ),
    Row(
        "layer_norm",
        lambda x, w, b: x.layer_norm((3, 4), w, b),
        ("numbers", "numbers", "numbers"),
        (((2, 3, 4), (3, 4), (3, 4)),),
        lambda x, w, b: nn("layer_norm", normalized_shape=(3, 4), weight=w, bias=b)(x),
        PRECISE,
        True,
        SUM,
        True,
    ),
    Row(
        "rms_norm",
        lambda x, w: (x.rms_norm(4, w, eps=0.1), x.rms_norm((3, 4))),
        ("numbers", "numbers"),
        (((2, 3, 4), (4,)),),
        lambda x, w: (
            nn("rms_norm", normalized_shape=(4,), weight=w, eps=0.1)(x),
            nn("rms_norm", normalized_shape=(3, 4), eps=2.0**-23)(x),
        ),
        has_gradient=True,
        ulps=SUM,
        of_largest=True,
    ),
    Row(
        "group_norm",
        lambda x, w, b: x.group_norm(2, w, b),
        ("numbers", "numbers", "numbers"),
        (((2, 4, 3), (4,), (4,)), ((3, 8), (8,), (8,))),
        lambda x, w, b: nn("group_norm", num_groups=2, weight=w, bias=b)(x),
        PRECISE,
        True,
        SUM,
        True,
    ),
    Row(
        "normalize of zeros",
        lambda x: (x * 0).normalize(eps=0.5),
        ("numbers",),
        (((2, 3),),),
        lambda x: nn("normalize", eps=0.5)(x * 0),
        has_gradient=True,
        has_zero_sign=False,
    ),
)

PYTORCH_ALIASES = (
    Row(
        "add and sub with alpha",
        lambda x, y: (x.add(y, alpha=2), x.sub(y, alpha=3), x.clone().add_(y, alpha=2)),
        ("numbers", "numbers"),
        (((3, 5), (5,)),),
        dtypes=NUMBERS,
        ulps=1,
        of_largest=True,
    ),
    Row(
        "type_as",
        lambda x, y: x.type_as(y),
        ("numbers", "bools"),
        (((3, 5), (5,)),),
        dtypes=("float32", "int32"),
    ),
    Row(
        "type to",
        lambda x: (x.type("float32"), x.to("CPU", "float32"), x.to(dtype="float32")),
        ("numbers",),
        (((3, 5),),),
        lambda x: (x.float(), x.float(), x.float()),
        EVERY,
    ),
    Row(
        "new_zeros new_ones new_full new_tensor",
        lambda x: (
            x.new_zeros(2, 3),
            x.new_ones((2,)),
            x.new_full((2,), 1),
            x.new_tensor([1, 0]),
        ),
        ("numbers",),
        (((3,),),),
        dtypes=EVERY,
    ),
    Row(
        "logspace",
        lambda: _logspace(),
        theirs=lambda: (
            pt("logspace")(0, 2, 5),
            pt("logspace", base=2.0)(-3, 3, 4),
        ),
        ulps=FUNCTION,
    ),
    Row("mm", lambda x, y: x.mm(y), ("numbers", "numbers"), (((3, 5), (5, 2)),), ulps=SUM),
    Row(
        "round to decimals",
        lambda x: (x.round(decimals=1), x.round(decimals=-1)),
        ("numbers",),
        (((3, 5),),),
        dtypes=PRECISE,
        ulps=1,
    ),
    Row(
        "named pairs of sort topk cummax median kthvalue aminmax",
        lambda x: (
            *(x.sort(1).values, x.sort(1).indices, x.topk(2).values, x.topk(2).indices),
            *(x.cummax(dim=1).values, x.median(1).indices, x.kthvalue(2, 1).values),
            *(x.aminmax(dim=0).min, x.aminmax(dim=0).max),
        ),
        ("numbers",),
        (((3, 5),),),
    ),
    Row(
        "masked_scatter",
        lambda x, m, y: x.masked_scatter(m, y),
        ("numbers", "bools", "numbers"),
        (((3, 5), (3, 5), (4, 5)), ((3, 5), (5,), (20,)), ((0,), (0,), (3,))),
        dtypes=NUMBERS,
        has_gradient=True,
    ),
    Row(
        "masked_scatter_",
        lambda x, m, y: x.clone().masked_scatter_(m, y),
        ("numbers", "bools", "numbers"),
        (((3, 5), (3, 5), (4, 5)),),
    ),
    Row(
        "inverse logdet",
        lambda x: _of_matrix(x),
        ("unit",),
        (((3, 3),), ((2, 3, 3),)),
        dtypes=PRECISE,
        has_gradient=True,
        ulps=256,
        of_largest=True,
    ),
)


def _logspace() -> Any:
    from weft.tensor import Tensor

    return Tensor.logspace(0, 2, 5), Tensor.logspace(-3, 3, 4, base=2.0)


def _of_matrix(x: Any) -> Any:
    """A matrix with a positive determinant."""
    whole = x @ x.mT + x.new_ones(3).diag() * 2
    return whole.inverse(), whole.logdet()
