"""A variational autoencoder learns to draw digits of 8 × 8 pixels.

    python examples/vae.py

An image becomes the mean and the variance of a few normal numbers; numbers drawn from there become
an image again. The loss is the error of the image plus how far the numbers are from plain noise.
At the end, noise is turned into digits. They come with Weft, so nothing is downloaded.
"""

import argparse
from collections.abc import Sequence

import numpy as np

from weft import Tensor, jit, nn, progress

PIXELS = 64


class VAE:
    def __init__(self, hidden: int, latent: int) -> None:
        self.encoder = nn.Sequential(nn.Linear(PIXELS, hidden), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, PIXELS)
        )

    def loss(self, x: Tensor) -> Tensor:
        """The negative evidence lower bound, per image."""
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        noise = Tensor.randn(*mean.shape)
        pixels = self.decoder(mean + (log_variance * 0.5).exp() * noise)
        error = pixels.binary_crossentropy_logits(x, reduction="sum")
        # The divergence of the normal distribution from the one of mean 0 and variance 1.
        divergence = -0.5 * (1 + log_variance - mean * mean - log_variance.exp()).sum()
        return (error + divergence) / len(x)

    def draw(self, latent: Tensor) -> Tensor:
        return self.decoder(latent).sigmoid()


def as_text(image: np.ndarray) -> str:
    shades = " .:-=+*#%@"
    return "\n".join("".join(shades[int(v * 9.99)] * 2 for v in row) for row in image)


def main(argv: Sequence[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--latent", type=int, default=6)
    parser.add_argument("--show", type=int, default=3, help="how many digits to print")
    args = parser.parse_args(argv)

    Tensor.manual_seed(0)
    images = nn.datasets.digits(test=0)[0].numpy().reshape(-1, PIXELS) / np.float32(16)
    model = VAE(args.hidden, args.latent)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.003)

    @jit
    def train_step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model.loss(x)
        loss.backward()
        optimizer.step()
        return loss

    losses: list[float] = []
    loader = nn.DataLoader(images, args.batch, shuffle=True, drop_last=True)
    bar = progress(range(args.epochs), "epochs")
    for _ in bar:
        losses.append(float(np.mean([train_step(x).item() for x in loader])))
        bar.set_postfix(loss=f"{losses[-1]:.2f}")
    print(f"loss per image: {losses[0]:.2f} at first, {losses[-1]:.2f} at last")
    for image in model.draw(Tensor.randn(args.show, args.latent)).numpy():
        print(as_text(image.reshape(8, 8)), end="\n\n")
    return losses


if __name__ == "__main__":
    main()
