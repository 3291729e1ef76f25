"""A physics-informed network: it solves Burgers' equation by minimizing what is left of it.

u_t + u u_x = nu u_xx on -1 < x < 1 with u(0, x) = -sin(pi x) and u(t, -1) = u(t, 1) = 0.
`python pinn.py --adam 200 --lbfgs 30`
"""

import argparse

import numpy as np

import weft as torch
import weft.nn as nn

device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


class MLP(nn.Module):
    def __init__(self, layers):
        super().__init__()
        modules = []
        for i in range(len(layers) - 2):
            modules += [nn.Linear(layers[i], layers[i + 1]), nn.Tanh()]
        modules.append(nn.Linear(layers[-2], layers[-1]))
        self.net = nn.Sequential(*modules)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_normal_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, t, x):
        return self.net(torch.cat([t, x], dim=1))


class Burgers:
    def __init__(self, args):
        rng = np.random.default_rng(0)
        inside = rng.uniform([0, -1], [1, 1], (args.points, 2)).astype(np.float32)
        self.t = torch.from_numpy(inside[:, 0:1]).to(device).requires_grad_(True)
        self.x = torch.tensor(inside[:, 1:2], requires_grad=True, device=device)
        side = args.points // 4
        x0 = np.linspace(-1, 1, side, dtype=np.float32).reshape(-1, 1)
        self.x0 = torch.from_numpy(x0).to(device)
        self.t0 = torch.zeros_like(self.x0)
        self.u0 = -torch.sin(np.pi * self.x0)
        self.tb = torch.linspace(0, 1, side).unsqueeze(-1).repeat(2, 1).to(device)
        self.xb = torch.cat([-torch.ones(side, 1), torch.ones(side, 1)]).to(device)
        self.nu = args.nu
        self.net = MLP([2] + [args.width] * args.depth + [1]).to(device)
        if args.weights:
            self.net.load_state_dict(torch.load(args.weights))
        self.mse = nn.MSELoss()
        self.lbfgs = torch.optim.LBFGS(
            self.net.parameters(),
            lr=1.0,
            max_iter=args.lbfgs,
            max_eval=args.lbfgs * 2,
            history_size=50,
            tolerance_grad=1e-7,
            tolerance_change=1.0 * np.finfo(float).eps,
            line_search_fn="strong_wolfe",
        )
        self.adam = torch.optim.Adam(self.net.parameters(), lr=5e-3)
        self.losses = []

    def residual(self):
        u = self.net(self.t, self.x)
        ones = torch.ones_like(u)
        u_t = torch.autograd.grad(u, self.t, grad_outputs=ones, create_graph=True)[0]
        u_x = torch.autograd.grad(u, self.x, grad_outputs=ones, create_graph=True)[0]
        u_xx = torch.autograd.grad(
            u_x, self.x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True
        )[0]
        return u_t + u * u_x - self.nu * u_xx

    def loss(self):
        f = self.residual()
        loss_f = self.mse(f, torch.zeros_like(f))
        loss_0 = self.mse(self.net(self.t0, self.x0), self.u0)
        loss_b = self.net(self.tb, self.xb).pow(2).mean()
        return loss_f + loss_0 + loss_b

    def closure(self):
        self.lbfgs.zero_grad()
        loss = self.loss()
        loss.backward()
        self.losses.append(loss.item())
        if len(self.losses) % 50 == 0:
            print(f"{len(self.losses)}: loss {loss.item():.3e}")
        return loss

    def train(self, adam_steps):
        self.net.train()
        for _ in range(adam_steps):
            self.adam.step(self.closure)
        self.lbfgs.step(self.closure)
        return self.losses


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adam", type=int, default=200)
    parser.add_argument("--lbfgs", type=int, default=200)
    parser.add_argument("--points", type=int, default=512)
    parser.add_argument("--width", type=int, default=20)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--nu", type=float, default=0.01 / np.pi)
    parser.add_argument("--weights", help="a file of weights to begin with")
    args = parser.parse_args(argv)

    torch.manual_seed(1234)
    torch.set_default_dtype(torch.float32)
    problem = Burgers(args)
    losses = problem.train(args.adam)
    print(f"{len(losses)} evaluations: loss {losses[0]:.3e} -> {losses[-1]:.3e}")
    with torch.no_grad():
        x = torch.linspace(-1, 1, 41).reshape(-1, 1).to(device)
        u = problem.net(torch.full_like(x, 0.5), x).flatten()
    print(" ".join(f"{value:+.2f}" for value in u[::4].tolist()))
    return losses, u


if __name__ == "__main__":
    main()
