import numpy as np
import pytest

from ezgreedy.games import Emulator, Protocol, colours
from ezgreedy.games.atari.screen_cells import COLUMNS, LEVELS, ROWS, CoarseEmulator, screen_cell


def plain_cell(screen):
    """The definition, square by square, in exact integers."""
    height, width = screen.shape
    red, green, blue = np.moveaxis(colours()[screen // 2].astype(int), -1, 0)
    greys = (299 * red + 587 * green + 114 * blue) // 1000
    cell = np.empty((ROWS, COLUMNS), dtype=np.uint8)
    for row in range(ROWS):
        for column in range(COLUMNS):
            square = greys[
                row * height // ROWS : (row + 1) * height // ROWS,
                column * width // COLUMNS : (column + 1) * width // COLUMNS,
            ]
            cell[row, column] = int(square.sum()) * LEVELS // (256 * square.size)
    return cell


def test_cells_of_real_screens_are_those_of_the_definition(name):
    game = CoarseEmulator(name, rng=np.random.default_rng(0))
    game.reset()
    for action in np.random.default_rng(1).integers(game.num_actions, size=40).tolist():
        step = game.step(action)
        expected = plain_cell(np.asarray(game._machine.getScreen()))
        np.testing.assert_array_equal(step.observation[0], expected)
    assert step.observation.max() > 0


def test_cells_of_any_screen_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    for size in ((210, 160), (8, 11), (31, 29)):
        screen = (2 * rng.integers(128, size=size)).astype(np.uint8)
        np.testing.assert_array_equal(screen_cell(screen), plain_cell(screen))


def test_one_bright_square_is_one_square_of_the_cell():
    screen = np.zeros((210, 160), dtype=np.uint8)
    screen[183:210, 145:160] = 2 * 7  # the console's lightest grey, 236 of 255: level 7 of 0 to 7
    expected = np.zeros((ROWS, COLUMNS), dtype=np.uint8)
    expected[-1, -1] = 7
    np.testing.assert_array_equal(screen_cell(screen), expected)


def test_the_game_goes_as_the_full_emulator_plays_it(name):
    protocol = Protocol(reward_bound=None, zeroes_discount_on_life_loss=False)
    full = Emulator(name, protocol, rng=np.random.default_rng(3))
    coarse = CoarseEmulator(name, rng=np.random.default_rng(3))
    full.reset()
    coarse.reset()
    for action in np.random.default_rng(4).integers(full.num_actions, size=150).tolist():
        one, other = full.step(action), coarse.step(action)
        assert one[1:] == other[1:]
        assert coarse.lives == one.lives
        assert coarse.ram() == bytes(full._machine.getRAM())
        if one.terminated:
            full.reset()
            coarse.reset()


def test_the_memory_is_a_copy_of_128_bytes():
    game = CoarseEmulator("Pong", rng=np.random.default_rng(0))
    game.reset()
    before = game.ram()
    game.step(2)
    assert len(before) == 128
    assert game.ram() != before


@pytest.mark.parametrize("stacked", [1, 3])
def test_observations_are_cells_under_any_protocol(stacked):
    protocol = Protocol(stacked_frames=stacked)
    game = CoarseEmulator("Pong", protocol, rng=np.random.default_rng(0))
    assert game.reset().shape == (stacked, ROWS, COLUMNS)
