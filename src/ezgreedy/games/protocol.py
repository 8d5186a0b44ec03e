"""How a game is presented to an agent: the settings, and the record of one step.

The defaults are the paper's protocol for Rainbow on Atari-57, as read by dqn_zoo where the paper
says nothing: an action lasts four frames, the agent sees the last four of these windows in grey,
only the number of no-ops at the beginning of an episode is random, and losing a life ends the
future of a transition but not the episode.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ezgreedy import requirements as require

# uint8, or uint16 where a pixel is a code of the palette.
Frames = NDArray[Any]

COLOURS = ("grey", "palette")


# Frames within one call; far more than anybody plays, but a file may say anything.
MOST_AT_ONCE = 10_000


@dataclass(frozen=True)
class Protocol:
    """The settings between a game and an agent.

    Args:
        frame_skip: raw frames that one action lasts.
        pooled_frames: number of these, the last ones, merged by their element-wise maximum, which
            shows sprites that the console draws only on every other frame. If the game ends in
            mid-window, missing frames count as black.
        screen_size: side of the square that grey screens are shrunk to.
        stacked_frames: number of frames in an observation, the newest last; black before the first
            of an episode, and kept when a life is lost.
        most_noop_frames: an episode begins with n raw frames of no-op, n uniform on 1, …, this;
            0 for none. FIRE is never pressed for the agent.
        sticky_probability: chance, at each raw frame, that the previous action is executed instead.
        has_full_action_set: all actions of the console rather than those the game distinguishes.
        most_episode_frames: the episode is truncated, with discount 1, after this many raw frames
            of the agent's actions; the no-ops before them do not count.
        zeroes_discount_on_life_loss: a lost life gives discount 0. The episode continues.
        reward_bound: the raw reward is clipped to [−bound, bound]; None to leave it as it is.
        colour: "grey" for shrunk grey pictures, "palette" for whole screens as codes of colours,
            uint16 [1, 210, 160]; see `palette`.
    """

    frame_skip: int = 4
    pooled_frames: int = 2
    screen_size: int = 84
    stacked_frames: int = 4
    most_noop_frames: int = 30  # Hessel et al.
    sticky_probability: float = 0.0  # Paper: no sticky actions
    has_full_action_set: bool = False
    most_episode_frames: int = 108_000  # half an hour
    zeroes_discount_on_life_loss: bool = True
    reward_bound: float | None = 1.0
    colour: str = "grey"

    def __post_init__(self) -> None:
        require.integer("frame_skip", self.frame_skip, least=1, most=MOST_AT_ONCE)
        require.integer("pooled_frames", self.pooled_frames, least=1)
        require.integer("screen_size", self.screen_size, least=1, most=1024)
        require.integer("stacked_frames", self.stacked_frames, least=1, most=MOST_AT_ONCE)
        require.integer("most_noop_frames", self.most_noop_frames, 0, MOST_AT_ONCE)
        require.number("sticky_probability", self.sticky_probability, least=0.0, most=1.0)
        require.flag("has_full_action_set", self.has_full_action_set)
        require.integer("most_episode_frames", self.most_episode_frames, least=1)
        require.flag("zeroes_discount_on_life_loss", self.zeroes_discount_on_life_loss)
        if self.reward_bound is not None:
            require.number("reward_bound", self.reward_bound, least=0.0)
        require.one_of("colour", self.colour, COLOURS)
        if self.colour == "palette" and self.pooled_frames > 2:
            rule = "be at most 2 where colour is 'palette', whose codes are of pairs of screens"
            raise require.refuse("pooled_frames", rule, self.pooled_frames)
        if self.pooled_frames > self.frame_skip:
            rule = f"be at most frame_skip, which is {self.frame_skip}"
            raise require.refuse("pooled_frames", rule, self.pooled_frames)
        if self.most_episode_frames % self.frame_skip:
            rule = f"be a multiple of frame_skip, which is {self.frame_skip}"
            raise require.refuse("most_episode_frames", rule, self.most_episode_frames)


# R2D2's protocol. Paper: "the raw frames", 210 × 160 in colour, one at a time; Kapturowski et
# al.: all 18 actions, rewards as they are, and lives that mean nothing.
R2D2_PROTOCOL = Protocol(
    stacked_frames=1,
    has_full_action_set=True,
    zeroes_discount_on_life_loss=False,
    reward_bound=None,
    colour="palette",
)


# Worlds made to answer a question, not for people: every step counts, and nothing is added to it.
SMALL_WORLD = Protocol(
    frame_skip=1,
    pooled_frames=1,
    stacked_frames=1,
    most_noop_frames=0,
    zeroes_discount_on_life_loss=False,
    reward_bound=None,
)


def require_small_world(protocol: Protocol) -> None:
    """Refuse protocols that do not fit such a world: it has no no-ops and no screens to pool."""
    for name in ("frame_skip", "pooled_frames"):
        if getattr(protocol, name) != 1:
            raise require.refuse(name, "be 1 where every step counts", getattr(protocol, name))
    if protocol.most_noop_frames:
        rule = "be 0 where no action does nothing"
        raise require.refuse("most_noop_frames", rule, protocol.most_noop_frames)
    if protocol.colour != "grey":
        raise require.refuse("colour", "be 'grey' where there are no colours", protocol.colour)


class Step(NamedTuple):
    """The result of one action."""

    observation: Frames  # [stacked_frames · planes, height, width], a copy
    reward: float  # as the game gave it, summed over the frames; scores add these up
    clipped_reward: float  # what agents learn from
    discount: float  # 0 at a terminal step or a lost life, else 1; 1 at a truncated step
    terminated: bool  # the game is over
    truncated: bool  # the cap was reached and the game was not over
    lives: int  # left after the step; always 0 in games without lives
    episode_return: float  # the raw rewards of the episode up to and including this step
    episode_frames: int  # the raw frames of the agent's actions up to and including this step
