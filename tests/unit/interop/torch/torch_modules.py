"""Ten ordinary modules of PyTorch, and inputs for them."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- as everyone calls it


class ResidualBlock(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(x + self.second_norm(self.second(y)))


class Recurrent(nn.Module):
    def __init__(self, size=8, hidden=12):
        super().__init__()
        self.cells = nn.LSTM(size, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x):
        return self.out(self.cells(x)[0][:, -1])


class GPTBlock(nn.Module):
    def __init__(self, size=16, heads=2):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        batch, time, size = x.shape
        q, k, v = self.qkv(self.before(x)).split(size, dim=2)
        q, k, v = (
            each.view(batch, time, self.heads, size // self.heads).transpose(1, 2)
            for each in (q, k, v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time, size))
        return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh"))


class UNetBlock(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.norm = nn.GroupNorm(2, channels)
        self.down = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.leave = nn.Conv2d(2 * channels, 3, 1)

    def forward(self, x):
        wide = F.silu(self.norm(self.enter(x)))
        low = F.silu(self.down(wide))
        smooth = F.interpolate(low, scale_factor=2, mode="bilinear")[:, :8]
        return self.leave(torch.cat([wide, self.up(low) + smooth], dim=1))


class VAE(nn.Module):
    def __init__(self, size=12, latent=4):
        super().__init__()
        self.enter, self.leave = nn.Linear(size, 2 * latent), nn.Linear(latent, size)

    def forward(self, x):
        mean, log_variance = self.enter(x).chunk(2, dim=-1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).mean()
        return F.binary_cross_entropy_with_logits(self.leave(z), x.sigmoid()) + divergence


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.EmbeddingBag(20, 6, mode="mean")
        self.sum = nn.EmbeddingBag(20, 6, mode="sum")
        self.out = nn.Linear(6, 3)

    def forward(self, index):
        return self.out(self.mean(index) * self.sum(index))


class MaskedAttention(nn.Module):
    def __init__(self, size=16, heads=4):
        super().__init__()
        self.attention = nn.MultiheadAttention(size, heads, batch_first=True)

    def forward(self, x):
        time = x.shape[1]
        mask = torch.ones(time, time, dtype=torch.bool, device=x.device).triu(1)
        return self.attention(x, x, x, attn_mask=mask)[0]


def mlp():
    return nn.Sequential(
        nn.Linear(8, 32),
        nn.GELU(),
        nn.LayerNorm(32),
        nn.Linear(32, 16),
        nn.Tanh(),
        nn.Linear(16, 4),
    )


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3),
        nn.LeakyReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32, 5), nn.LogSoftmax(1),
    )  # fmt: skip


def encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


MODULES = {
    "MLP": (mlp, (5, 8)),
    "CNN": (cnn, (2, 3, 14, 14)),
    "ResNet block": (ResidualBlock, (2, 8, 9, 9)),
    "LSTM": (Recurrent, (3, 6, 8)),
    "transformer encoder": (encoder, (2, 7, 16)),
    "GPT block": (GPTBlock, (2, 7, 16)),
    "U-Net block": (UNetBlock, (2, 3, 8, 8)),
    "VAE": (VAE, (6, 12)),
    "embedding bag": (Bags, None),
    "attention with mask": (MaskedAttention, (2, 6, 16)),
}


def example(name, seed=0):
    """A module with weights of this seed, and an input that it takes."""
    torch.manual_seed(seed)
    make, shape = MODULES[name]
    module = make()
    if shape is None:
        return module, torch.randint(0, 20, (3, 4))
    return module, torch.randn(shape)
