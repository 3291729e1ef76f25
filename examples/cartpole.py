"""Reinforcement learning: a policy learns to balance a pole on a cart.

    python examples/cartpole.py

Several carts run side by side. After every few steps the policy moves towards actions that turned
out better than the critic expected (advantage actor-critic). The physics is that of Barto, Sutton
and Anderson (1983): a push to the left or to the right at every step, for at most 200 steps.
"""

import argparse
import math
from collections.abc import Sequence

import numpy as np

from weft import Tensor, jit, nn, progress

LONGEST = 200
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


class Carts:
    """Carts with poles; those that fall, or have stood long enough, start anew."""

    def __init__(self, count: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.state = self._start(count)  # position, speed, angle, speed of the angle
        self.age = np.zeros(count, int)
        self.finished: list[int] = []

    def _start(self, count: int) -> np.ndarray:
        return self.random.uniform(-0.05, 0.05, (count, 4)).astype(np.float32)

    def step(self, pushes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push each cart to the left (0) or right (1); rewards, and which carts start anew."""
        x, speed, angle, turning = self.state.T
        force = np.where(pushes == 1, FORCE, -FORCE)
        sine, cosine, mass = np.sin(angle), np.cos(angle), CART + POLE
        along = (force + POLE * HALF_LENGTH * turning**2 * sine) / mass
        turn = (GRAVITY * sine - cosine * along) / (
            HALF_LENGTH * (4 / 3 - POLE * cosine**2 / mass)
        )
        push = along - POLE * HALF_LENGTH * turn * cosine / mass
        moved = [x + SECONDS * speed, speed + SECONDS * push]
        turned = [angle + SECONDS * turning, turning + SECONDS * turn]
        self.state = np.stack([*moved, *turned], 1).astype(np.float32)
        self.age += 1
        fell = (abs(self.state[:, 0]) > 2.4) | (abs(self.state[:, 2]) > math.radians(12))
        over = fell | (self.age >= LONGEST)
        self.finished += self.age[over].tolist()
        self.state[over] = self._start(int(over.sum()))
        self.age[over] = 0
        return np.where(fell, 0.0, 1.0).astype(np.float32), over


class ActorCritic:
    def __init__(self, hidden: int) -> None:
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.Tanh())
        self.actor, self.critic = nn.Linear(hidden, 2), nn.Linear(hidden, 1)

    def __call__(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithms of the probabilities of both pushes, and the expected reward."""
        h = self.body(state)
        return self.actor(h).log_softmax(), self.critic(h).squeeze(-1)


def roll_out(model: ActorCritic, carts: Carts, steps: int, discount: float) -> list[np.ndarray]:
    """Let the policy act; states, pushes and the rewards that followed, all flattened."""
    states, pushes, rewards, ends = [], [], [], []
    for _ in range(steps):
        states.append(carts.state)
        logs, _ = model(Tensor(carts.state))
        chosen = carts.random.random(len(carts.state)) < np.exp(logs.numpy()[:, 1])
        reward, over = carts.step(chosen)
        pushes.append(chosen.astype(np.int32)), rewards.append(reward), ends.append(over)
    _, expected = model(Tensor(carts.state))
    following, returns = expected.numpy(), []
    for reward, over in zip(reversed(rewards), reversed(ends), strict=True):
        following = reward + discount * np.where(over, 0, following)
        returns.append(following.astype(np.float32))
    return [np.concatenate(each) for each in (states, pushes, returns[::-1])]


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=150)
    parser.add_argument("--carts", type=int, default=16)
    parser.add_argument("--steps", type=int, default=32, help="steps between two updates")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)

    Tensor.manual_seed(args.seed)
    carts, model = Carts(args.carts, args.seed), ActorCritic(hidden=64)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)

    @jit
    def train_step(states: Tensor, pushes: Tensor, returns: Tensor) -> Tensor:
        optimizer.zero_grad()
        logs, expected = model(states)
        better = (returns - expected).detach()
        better = (better - better.mean()) / (better.std() + 1e-6)
        chosen = logs.gather(1, pushes.unsqueeze(1)).squeeze(1)
        entropy = -(logs.exp() * logs).sum(1).mean()
        error = ((returns - expected) * 0.01).square().mean()
        loss = error - (chosen * better).mean() - 0.01 * entropy
        loss.backward()
        nn.optim.clip_grad_norm_(optimizer.params, 0.5)
        optimizer.step()
        return loss

    bar = progress(range(args.updates), "updates")
    for _ in bar:
        train_step(*(Tensor(each) for each in roll_out(model, carts, args.steps, 0.99)))
        bar.set_postfix(steps=np.mean(carts.finished[-20:] or [0]))
    first, last = (float(np.mean(each)) for each in (carts.finished[:20], carts.finished[-20:]))
    print(
        f"the pole stands for {first:.0f} steps at first, and for {last:.0f} of {LONGEST} at last"
    )
    return last


if __name__ == "__main__":
    main()
