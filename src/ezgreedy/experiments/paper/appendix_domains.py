"""The appendix's figure of the environments: what do the five domains look like?

The small ones draw themselves; Atari's panel is a frame of Private Eye if the emulator is
installed. There are no claims, hence no verdicts.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ezgreedy.experiments.experiment import Cell, Experiment, Record, Settings
from ezgreedy.findings.claims import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS: dict[str, Any] = {
    "domains": {
        "(a) DeepSea": ["ezgreedy/DeepSea-v0", {"size": 20}],
        "(b) GridWorld": ["ezgreedy/GridWorld-v0", {}],
        "(c) MountainCar": ["ezgreedy/MountainCarSparse-v0", {}],
        "(d) CartPole": ["ezgreedy/CartPoleSwingUpSparse-v0", {}],
    },
    "atari_label": "(e) Atari-57",
    "atari_game": "ALE/PrivateEye-v5",
    "num_atari_frames": 60,
    "reset_seed": 0,
}


def cells(settings: Settings) -> list[Cell]:
    """One cell for every picture."""
    return [
        Cell(label, {"label": label}) for label in (*settings["domains"], settings["atari_label"])
    ]


def run_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """Whether a picture can be drawn here, and its size."""
    picture = _picture(settings, settings["label"])
    return {"shape": None if picture is None else list(picture.shape)}


def summarise(settings: Settings, records: Sequence[Record]) -> Summary:
    """No claims, only the sizes of the panels."""
    return Summary([], data={"panels": {r.cell: r.result["shape"] for r in records}})


def draw(settings: Settings, summary: Summary, directory: Path) -> list[Path]:
    """All domains in one row, and in two columns for a narrow screen."""
    from ezgreedy.figures import style

    labels = [*settings["domains"], settings["atari_label"]]
    pictures = {label: _picture(settings, label) for label in labels}
    wide, narrow = (_drawn(pictures, columns) for columns in (len(labels), 2))
    return style.save_both(wide, narrow, directory / "domains")


def _drawn(pictures: Mapping[str, Any], columns: int) -> "Figure":
    from ezgreedy.figures import style

    num_rows = -(-len(pictures) // columns)
    with style.voice():
        figure = style.new_figure(2.2 * columns, 2.3 * num_rows)
        axes = figure.subplots(num_rows, columns, squeeze=False).ravel()
        for axis in axes[len(pictures) :]:
            axis.remove()
        for axis, (label, picture) in zip(axes, pictures.items(), strict=False):
            axis.set(xticks=[], yticks=[])
            axis.set_title(label, y=-0.16)
            axis.spines[:].set_visible(True)
            axis.spines[:].set_color(style.FAINT_COLOUR)
            axis.set_box_aspect(1.0)
            if picture is None:
                axis.text(
                    0.5, 0.5, "needs ale-py,\npart of the\n`deep` extra", ha="center", va="center"
                )
            else:
                axis.imshow(picture, aspect="equal", interpolation="antialiased")
                axis.set_anchor("C")
    return figure


def _picture(settings: Settings, label: str) -> Any:
    """A domain's first state as an RGB array; None if its emulator is not installed."""
    import gymnasium

    import ezgreedy.envs

    ezgreedy.envs.register()
    if label == settings["atari_label"]:
        return _atari_frame(settings)
    name, options = settings["domains"][label]
    env = gymnasium.make(name, render_mode="rgb_array", **options)
    env.reset(seed=settings["reset_seed"])
    return env.render()


def _atari_frame(settings: Settings) -> Any:
    if find_spec("ale_py") is None:
        return None
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    env = gymnasium.make(settings["atari_game"], render_mode="rgb_array")
    env.reset(seed=settings["reset_seed"])
    for _ in range(settings["num_atari_frames"]):
        env.step(0)
    return env.render()


EXPERIMENT = Experiment(
    id="appendix-domains",
    title="Appendix: the environments",
    shows="what DeepSea, GridWorld, MountainCar, CartPole and Atari look like",
    settings=SETTINGS,
    num_seeds=1,
    num_quick_seeds=1,
    cost_seconds=10.0,
    cells=cells,
    run_seed=run_seed,
    summarise=summarise,
    draw=draw,
)
