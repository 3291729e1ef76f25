"""A generative adversarial network of convolutions, which learns to draw rings.

`python gan.py --epochs 10`
"""

import argparse

import weft as torch
import weft.nn as nn
import weft.optim as optim
from weft.utils.data import DataLoader, Dataset

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class Rings(Dataset):
    """Images of 16 x 16 with one bright ring each, between -1 and 1."""

    def __init__(self, count):
        axis = torch.linspace(-1, 1, 16)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        self.radius = 0.4 + 0.4 * torch.rand(count)
        self.center = 0.3 * torch.rand((count, 2)) - 0.15
        cx, cy = self.center[:, 0].view(-1, 1, 1), self.center[:, 1].view(-1, 1, 1)
        distance = ((x - cx).pow(2) + (y - cy).pow(2)).sqrt()
        rings = torch.exp(-((distance - self.radius.view(-1, 1, 1)) ** 2) / 0.02)
        self.images = rings.unsqueeze(1).mul(2).sub(1)

    def __len__(self):
        return self.images.shape[0]

    def __getitem__(self, i):
        return self.images[i], self.radius[i]


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--images", type=int, default=2048)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--nz", type=int, default=32)
    parser.add_argument("--weights", nargs=2, help="files of weights to begin with")
    args = parser.parse_args(argv)

    torch.manual_seed(999)
    dataloader = DataLoader(Rings(args.images), batch_size=args.batch, shuffle=True, num_workers=0)
    netG = Generator(args.nz, args.width).to(device)
    netD = Discriminator(args.width).to(device)
    netG.apply(weights_init)
    netD.apply(weights_init)
    if args.weights:
        netG.load_state_dict(torch.load(args.weights[0]))
        netD.load_state_dict(torch.load(args.weights[1]))
    criterion = nn.BCELoss()
    fixed_noise = torch.randn(4, args.nz, 1, 1, device=device)
    real_label, fake_label = 1.0, 0.0
    optimizerD = optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.999))

    D_losses, G_losses = [], []
    for epoch in range(args.epochs):
        for i, data in enumerate(dataloader, 0):
            # Update D: maximize log(D(x)) + log(1 - D(G(z)))
            netD.zero_grad()
            real = data[0].to(device)
            b_size = real.size(0)
            label = torch.full((b_size,), real_label, dtype=torch.float, device=device)
            output = netD(real).view(-1)
            errD_real = criterion(output, label)
            errD_real.backward()
            D_x = output.mean().item()

            noise = torch.randn(b_size, args.nz, 1, 1, device=device)
            fake = netG(noise)
            label.fill_(fake_label)
            output = netD(fake.detach()).view(-1)
            errD_fake = criterion(output, label)
            errD_fake.backward()
            D_G_z1 = output.mean().item()
            errD = errD_real + errD_fake
            optimizerD.step()

            # Update G: maximize log(D(G(z)))
            netG.zero_grad()
            label.fill_(real_label)
            output = netD(fake).view(-1)
            errG = criterion(output, label)
            errG.backward()
            D_G_z2 = output.mean().item()
            optimizerG.step()

            G_losses.append(errG.item())
            D_losses.append(errD.item())
            if i % 16 == 0:
                print(
                    f"[{epoch}/{args.epochs}][{i}/{len(dataloader)}] "
                    f"Loss_D: {errD.item():.4f} Loss_G: {errG.item():.4f} "
                    f"D(x): {D_x:.4f} D(G(z)): {D_G_z1:.4f} / {D_G_z2:.4f}"
                )

    netG.eval()
    with torch.no_grad():
        fake = netG(fixed_noise).detach().cpu()
    for row in fake[0, 0].tolist():
        print("".join(" .:#"[int((v + 1) * 1.99)] * 2 for v in row))
    return D_losses, G_losses, fake


if __name__ == "__main__":
    main()
