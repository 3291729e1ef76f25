"""Generators: numbers of their own, which other draws do not move."""

import pytest

import weft
from weft import ArgumentTypeError, Tensor
from weft.utils.data import DataLoader, random_split


def test_a_generator_draws_apart_from_all_others():
    Tensor.manual_seed(5)
    expected = Tensor.rand(4).tolist()
    Tensor.manual_seed(5)
    generator = weft.Generator().manual_seed(1)
    first = weft.randn(3, generator=generator).tolist()
    assert Tensor.rand(4).tolist() == expected
    second = weft.randn(3, generator=generator).tolist()
    assert first != second
    generator.manual_seed(1)
    assert weft.randn(3, generator=generator).tolist() == first
    state = generator.get_state()
    again = weft.randperm(9, generator=generator).tolist()
    assert weft.randperm(9, generator=generator.set_state(state)).tolist() == again
    assert generator.initial_seed() == 1
    with pytest.raises(ArgumentTypeError, match="generator is of type int"):
        weft.rand(2, generator=3)


def test_writes_and_first_values_draw_from_a_generator():
    made = [
        weft.nn.init.normal_(Tensor.zeros(3), 0.0, 1.0, weft.Generator().manual_seed(2)).tolist()
        for _ in range(2)
    ]
    assert made[0] == made[1]
    drawn = Tensor.zeros(3).uniform_(generator=weft.Generator().manual_seed(2)).tolist()
    assert drawn == Tensor.rand(3, generator=weft.Generator().manual_seed(2)).tolist()


def test_the_order_of_a_loader_follows_from_the_seed():
    def order(seed: int) -> list[list[int]]:
        weft.manual_seed(seed)
        loader = DataLoader(list(range(8)), batch_size=8, shuffle=True)
        return [batch.tolist() for _ in range(2) for batch in loader]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(1)[0] != order(1)[1]
    weft.manual_seed(3)
    loader = DataLoader(list(range(8)), 8, True, generator=weft.Generator().manual_seed(4))
    first = next(iter(loader)).tolist()
    weft.manual_seed(9)
    loader = DataLoader(list(range(8)), 8, True, generator=weft.Generator().manual_seed(4))
    assert next(iter(loader)).tolist() == first
    halves = [
        [list(part) for part in random_split(range(6), [3, 3], weft.Generator().manual_seed(0))]
        for _ in range(2)
    ]
    assert halves[0] == halves[1]
