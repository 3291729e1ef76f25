"""Losses as layers: `nn.MSELoss()(prediction, target)`. The functions are in `nn.functional`."""

from __future__ import annotations

from weft.nn import functional as F  # noqa: N812 -- as everyone writes it
from weft.nn.layer_of import layer_of

L1Loss = layer_of(F.l1_loss, "L1Loss", 2, "size_average reduce reduction")
MSELoss = layer_of(F.mse_loss, "MSELoss", 2, "size_average reduce reduction")
SmoothL1Loss = layer_of(F.smooth_l1_loss, "SmoothL1Loss", 2)
HuberLoss = layer_of(F.huber_loss, "HuberLoss", 2, "reduction delta")
KLDivLoss = layer_of(F.kl_div, "KLDivLoss", 2)
BCELoss = layer_of(F.binary_cross_entropy, "BCELoss", 2)
BCEWithLogitsLoss = layer_of(F.binary_cross_entropy_with_logits, "BCEWithLogitsLoss", 2)
PoissonNLLLoss = layer_of(F.poisson_nll_loss, "PoissonNLLLoss", 2)
GaussianNLLLoss = layer_of(F.gaussian_nll_loss, "GaussianNLLLoss", 3)
SoftMarginLoss = layer_of(F.soft_margin_loss, "SoftMarginLoss", 2)
HingeEmbeddingLoss = layer_of(F.hinge_embedding_loss, "HingeEmbeddingLoss", 2)
MarginRankingLoss = layer_of(F.margin_ranking_loss, "MarginRankingLoss", 3)
CosineEmbeddingLoss = layer_of(F.cosine_embedding_loss, "CosineEmbeddingLoss", 3)
TripletMarginLoss = layer_of(F.triplet_margin_loss, "TripletMarginLoss", 3)
TripletMarginWithDistanceLoss = layer_of(
    F.triplet_margin_with_distance_loss, "TripletMarginWithDistanceLoss", 3
)
CrossEntropyLoss = layer_of(F.cross_entropy, "CrossEntropyLoss", 2)
NLLLoss = layer_of(F.nll_loss, "NLLLoss", 2)
NLLLoss2d = NLLLoss
MultiMarginLoss = layer_of(F.multi_margin_loss, "MultiMarginLoss", 2)
MultiLabelMarginLoss = layer_of(F.multilabel_margin_loss, "MultiLabelMarginLoss", 2)
MultiLabelSoftMarginLoss = layer_of(F.multilabel_soft_margin_loss, "MultiLabelSoftMarginLoss", 2)
CTCLoss = layer_of(F.ctc_loss, "CTCLoss", 4)
CosineSimilarity = layer_of(F.cosine_similarity, "CosineSimilarity", 2)
PairwiseDistance = layer_of(F.pairwise_distance, "PairwiseDistance", 2)
