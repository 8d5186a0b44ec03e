"""What a run tells while it goes on, where no terminal can show a bar."""

import pytest

from ezgreedy.runs.evaluation import Evaluation
from ezgreedy.runs.progress import Bar


@pytest.mark.parametrize(
    ("returns", "unfinished", "words"),
    [
        ([3.0, 4.0], [9.0], "3.50 over 2 episodes"),
        ([], [1.0, 2.0], "1.50 over 2 unfinished episodes"),
    ],
)
def test_an_evaluation_is_told_with_what_its_mean_is_over(capsys, returns, unfinished, words):
    found = Evaluation(returns, unfinished, frames=100, explored_share=0.0)
    Bar("r2d2 on Pong", 1_000).see_record(
        {"kind": "evaluation", "frames": 500, **found.record()},
    )
    assert capsys.readouterr().err == f"r2d2 on Pong: evaluation at 500 frames: {words}\n"
