import numpy as np
import pytest

from ezgreedy import EZGreedy
from ezgreedy.analysis import environment_walks as plain_reference
from ezgreedy.analysis.grid_walks import DOWN, OpenGrid, _moved, first_visits
from ezgreedy.envs import grid_world
from ezgreedy.envs.grid_world import GridWorld


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("start_row", [0, 1])
def test_walks_are_those_of_the_plain_reference(epsilon: float, start_row: int) -> None:
    grid = OpenGrid(size=7, num_steps=400, start_row=start_row)
    fast = first_visits(EZGreedy(4, epsilon, lanes=3, seed=5), grid)
    plain = plain_reference.first_visits(
        lambda: GridWorld(7, (start_row, 3), None, bottom_ends=True),
        EZGreedy(4, epsilon, lanes=3, seed=5),
        grid.num_steps,
        greedy=lambda state: DOWN,
    )
    # The reference also sees the row of states that stand for having gone through the bottom.
    np.testing.assert_array_equal(fast.reshape(3, -1), plain.first[:, : 7 * 7])


def test_walks_move_as_the_environment_does() -> None:
    # The walks are NumPy alone, for the demonstration; the environment's compiled step is the rule.
    size, rng = 5, np.random.default_rng(0)
    grid = OpenGrid(size, start_row=1)
    rows, columns = np.divmod(np.arange(size * size).repeat(4), size)
    actions = np.tile(np.arange(4), size * size)
    order = rng.permutation(len(actions))
    rows, columns, actions = rows[order], columns[order], actions[order]
    finished = (rows == size - 1) & (actions == DOWN)
    moved = _moved(rows, columns, actions, finished, grid)
    for i in range(len(actions)):
        row, column, _, terminated = grid_world.step(
            rows[i], columns[i], actions[i], size, *grid_world.NO_GOAL, True
        )
        assert terminated == finished[i]
        expected = (1, size // 2) if terminated else (row, column)
        assert (moved[0][i], moved[1][i]) == expected


def test_a_greedy_walk_goes_straight_down() -> None:
    visits = first_visits(EZGreedy(4, 0.0), OpenGrid(size=5, num_steps=9, start_row=1))[0]
    assert visits[:, 2].tolist() == [9, 0, 1, 2, 3]
    assert (visits[:, [0, 1, 3, 4]] == 9).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 2}, "size must be at least 3; got 2"),
        ({"num_steps": 0}, "num_steps must be at least 1; got 0"),
        ({"start_row": 23}, "start_row must be at most 22; got 23"),
    ],
)
def test_impossible_grids_are_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpenGrid(**changes)
