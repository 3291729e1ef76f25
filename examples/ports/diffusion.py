"""A diffusion model: a U-Net learns to remove noise, and an average of its weights draws.

The images are discs and squares that the script makes. `python diffusion.py --steps 400`
"""

import argparse
import copy
import math

import weft as torch
import weft.nn as nn
import weft.nn.functional as F
from weft.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_shapes(count, size):
    """White discs and squares on black, as images of one channel between -1 and 1."""
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    images = torch.zeros(count, 1, size, size)
    for i in range(count):
        center = size // 4 + torch.randint(0, size // 2, (2,))
        radius = size // 6 + i % 3
        away = torch.stack([(rows - center[0]).abs(), (columns - center[1]).abs()]).float()
        distance = away.norm(dim=0) if i % 2 else away.max(dim=0).values
        images[i, 0] = (distance <= radius).float()
    return images * 2 - 1


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        self.register_buffer(
            "freqs", torch.exp(-math.log(10000) * torch.arange(half) / (half - 1))
        )
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 4), nn.SiLU(), nn.Linear(dim * 4, dim * 4))

    def forward(self, t):
        args = t.float()[:, None] * self.freqs[None]
        return self.mlp(torch.cat([args.sin(), args.cos()], dim=-1))


class ResBlock(nn.Module):
    def __init__(self, in_channels, out_channels, time_dim, dropout=0.0):
        super().__init__()
        self.norm1 = nn.GroupNorm(4, in_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.time = nn.Linear(time_dim, out_channels)
        self.norm2 = nn.GroupNorm(4, out_channels)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1)
        if in_channels == out_channels:
            self.skip = nn.Identity()
        else:
            self.skip = nn.Conv2d(in_channels, out_channels, kernel_size=1)

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(emb))[:, :, None, None]
        h = self.conv2(self.dropout(F.silu(self.norm2(h))))
        return h + self.skip(x)


class Attention(nn.Module):
    def __init__(self, channels, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(4, channels)
        self.qkv = nn.Conv2d(channels, channels * 3, 1)
        self.proj = nn.Conv2d(channels, channels, 1)
        nn.init.zeros_(self.proj.weight)
        nn.init.zeros_(self.proj.bias)

    def forward(self, x):
        b, c, h, w = x.shape
        qkv = self.qkv(self.norm(x)).view(b, 3, self.heads, c // self.heads, h * w)
        q, k, v = qkv.transpose(-1, -2).unbind(dim=1)
        out = F.scaled_dot_product_attention(q, k, v)
        return x + self.proj(out.transpose(-1, -2).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, channels=32, multipliers=(1, 2)):
        super().__init__()
        time_dim = channels * 4
        self.time = TimeEmbedding(channels)
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        widths = [channels * m for m in multipliers]
        self.downs = nn.ModuleList()
        self.ups = nn.ModuleList()
        current = channels
        for width in widths:
            block = ResBlock(current, width, time_dim)
            down = nn.Conv2d(width, width, 3, stride=2, padding=1)
            self.downs.append(nn.ModuleList([block, down]))
            current = width
        self.middle1 = ResBlock(current, current, time_dim)
        self.attention = Attention(current)
        self.middle2 = ResBlock(current, current, time_dim)
        for width in reversed(widths):
            up = nn.Conv2d(current, width, 3, padding=1)
            self.ups.append(nn.ModuleList([up, ResBlock(width * 2, width, time_dim)]))
            current = width
        self.head = nn.Sequential(
            nn.GroupNorm(4, current), nn.SiLU(), nn.Conv2d(current, 1, 3, padding=1)
        )

    def forward(self, x, t):
        emb = self.time(t)
        h = self.stem(x)
        skips = []
        for block, down in self.downs:
            h = block(h, emb)
            skips.append(h)
            h = down(h)
        h = self.middle2(self.attention(self.middle1(h, emb)), emb)
        for up, block in self.ups:
            h = up(F.interpolate(h, scale_factor=2, mode="nearest"))
            h = block(torch.cat([h, skips.pop()], dim=1), emb)
        return self.head(h)


class EMA:
    """An average of a model's weights that forgets slowly."""

    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for average, param in zip(self.model.parameters(), model.parameters(), strict=True):
            average.mul_(self.decay).add_(param.detach(), alpha=1 - self.decay)
        for average, buffer in zip(self.model.buffers(), model.buffers(), strict=True):
            average.copy_(buffer)


class Diffusion:
    """Noise is added in `steps` steps, by the cosine schedule, and taken away again."""

    def __init__(self, steps):
        self.steps = steps
        s = torch.linspace(0, steps, steps + 1, device=device) / steps
        alpha_bar = torch.cos((s + 0.008) / 1.008 * math.pi * 0.5) ** 2
        alpha_bar = alpha_bar / alpha_bar[0].item()
        self.betas = torch.clip(1 - alpha_bar[1:] / alpha_bar[:-1], 0.0001, 0.999)
        self.alphas = 1.0 - self.betas
        self.alpha_bar = torch.cumprod(self.alphas, dim=0)

    def loss(self, model, x):
        t = torch.randint(0, self.steps, (x.size(0),), device=x.device)
        noise = torch.randn_like(x)
        a = self.alpha_bar[t].view(-1, 1, 1, 1)
        noisy = a.sqrt() * x + (1 - a).sqrt() * noise
        return F.mse_loss(model(noisy, t), noise)

    @torch.no_grad()
    def sample(self, model, shape):
        x = torch.randn(shape, device=device)
        for i in reversed(range(self.steps)):
            t = torch.full((shape[0],), i, device=device, dtype=torch.long)
            eps = model(x, t)
            beta, alpha, bar = self.betas[i], self.alphas[i], self.alpha_bar[i]
            x = (x - beta / torch.sqrt(1 - bar) * eps) / torch.sqrt(alpha)
            if i > 0:
                x += torch.sqrt(beta) * torch.randn_like(x)
        return x.clamp_(-1, 1)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--multipliers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--noise-steps", type=int, default=100)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--weights", help="a file of weights to begin with")
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    dataset = TensorDataset(make_shapes(args.images, args.size))
    loader = DataLoader(dataset, batch_size=args.batch, shuffle=True, drop_last=True)
    model = UNet(args.channels, args.multipliers).to(device)
    if args.weights:
        model.load_state_dict(torch.load(args.weights, map_location=device))
    ema = EMA(model)
    diffusion = Diffusion(args.noise_steps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

    losses = []
    model.train()
    while len(losses) < args.steps:
        for (x,) in loader:
            x = x.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            loss = diffusion.loss(model, x)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            ema.update(model)
            losses.append(loss.item())
            if len(losses) % 50 == 0:
                lr = scheduler.get_last_lr()[0]
                print(f"step {len(losses)}: loss {sum(losses[-50:]) / 50:.4f}, lr {lr:.2e}")
            if len(losses) == args.steps:
                break

    pictures = diffusion.sample(ema.model, (args.samples, 1, args.size, args.size))
    for picture in pictures.squeeze(1).cpu().numpy():
        print("\n".join("".join(" .:#"[int((v + 1) * 1.99)] * 2 for v in row) for row in picture))
    return losses, pictures


if __name__ == "__main__":
    main()
