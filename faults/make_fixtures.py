"""Make the files of a release that later versions must load: a paused run, and how it ends.

Run once for each release: python faults/make_fixtures.py
"""

import json
import shutil
import sys
import tempfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import ezgreedy  # noqa: E402
from ezgreedy.learning.settings import Convolution  # noqa: E402
from ezgreedy.runs.run_loop import resume  # noqa: E402
from faults import base_runs  # noqa: E402

AGENTS = {"rainbow": ("rainbow-ez", "minatar/breakout"), "r2d2": ("r2d2-ez", "memory_chain/4")}


def main() -> None:
    """Write faults/fixtures/VERSION-AGENT.zip for every agent."""
    for name, (agent, game) in AGENTS.items():
        target = ROOT / "faults" / "fixtures" / f"{ezgreedy.__version__}-{name}.zip"
        target.parent.mkdir(exist_ok=True)
        settings = base_runs.brief(agent, game, frames=200)
        if name == "rainbow":
            small = replace(settings.agent, torso=(Convolution(2, 3, 2),), hidden_size=4)
            settings = replace(settings, agent=replace(small, num_atoms=5))
        with tempfile.TemporaryDirectory() as place:
            run = Path(place) / "run"
            base_runs.paused(run, settings, 160, base_runs.SELDOM)
            shutil.rmtree(run / "tensorboard")
            status = json.loads((run / "status.json").read_text())
            (run / "status.json").write_text(json.dumps({**status, "host": "", "pid": 0}))
            shutil.copytree(run, Path(place) / "whole")
            resume(Path(place) / "whole", base_runs.SELDOM)
            shutil.copy(Path(place) / "whole" / "results.jsonl", Path(place) / "results_end.jsonl")
            shutil.rmtree(Path(place) / "whole")
            made = {"ezgreedy": ezgreedy.__version__, "torch": version("torch").split("+")[0]}
            (Path(place) / "made.json").write_text(json.dumps(made, indent=2) + "\n")
            for path in Path(place).glob("*-*"):  # the output of processes
                path.unlink()
            shutil.make_archive(str(target.with_suffix("")), "zip", place)


if __name__ == "__main__":
    main()
