"""An agent of one's own: Rainbow that explores with another set of options.

The options of εz-greedy repeat one action. Those here rock: one action for k steps, then another
for as many, which is how MountainCar is solved. The settings class says how the agent explores;
`build` and everything else are inherited. The command line needs no more than `register`:

    cd examples
    ezgreedy train rainbow-rocking --import own_agent --game deep_sea/10 --scale laptop --out run
    ezgreedy sweep minatar --import own_agent --agents rainbow-ez,rainbow-rocking --out sweep

A package registers without `--import` through an entry point of the group "ezgreedy.plugins".
"""

from dataclasses import dataclass, fields

from ezgreedy import FiniteOptions, TemporallyExtended
from ezgreedy.agents.rainbow.presets import RAINBOW_EPS
from ezgreedy.agents.rainbow.settings import RainbowSettings
from ezgreedy.agents.registry import register
from ezgreedy.exploration.options import sequence


@dataclass(frozen=True)
class RockingRainbow(RainbowSettings):
    """Rainbow whose exploratory options go to and fro.

    Args:
        longest: largest number of steps in one direction.
    """

    longest: int = 4

    def explorer(self, num_actions, lanes=1, seed=0, *, evaluates=False):
        """Temporally-extended ε-greedy over all pairs of actions and lengths up to `longest`."""
        options = [
            sequence([first] * k + [second] * k)
            for first in range(num_actions)
            for second in range(num_actions)
            for k in range(1, self.longest + 1)
        ]
        epsilon = self.acted_epsilon(lanes, evaluates)
        return TemporallyExtended(FiniteOptions(num_actions, options), epsilon, lanes, seed)


# The paper's Rainbow with ε-greedy, but for how it explores.
SHARED = {field.name: getattr(RAINBOW_EPS, field.name) for field in fields(RAINBOW_EPS)}
register(RockingRainbow(**SHARED | {"name": "rainbow-rocking"}))


def main() -> None:
    """Trains it for a moment through the command line, as any other agent."""
    import tempfile

    from ezgreedy.cli import main as command

    with tempfile.TemporaryDirectory() as directory:
        words = (
            f"rainbow-rocking --game deep_sea/6 --scale laptop --frames 3000 --out {directory}/run"
        )
        changes = "--set evaluation.frames=500 --set agent.longest=3 --quiet"
        assert command(["train", *words.split(), *changes.split()]) == 0
        command(["evaluate", f"{directory}/run"])


if __name__ == "__main__":
    main()
