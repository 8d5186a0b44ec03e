"""Studies of runs: verdicts by the criteria that were stated, from runs whose scores are known."""

import json

import numpy as np
import pytest
from scipy.stats import fisher_exact, ttest_ind

from ezgreedy.cli import main
from ezgreedy.commands.judge import STUDIES
from ezgreedy.experiments.beyond import minatar_stopping
from ezgreedy.experiments.deep import atari100k
from ezgreedy.experiments.deep import durations as deep_durations
from ezgreedy.experiments.run_study import find, judge, run_studies
from ezgreedy.findings.intervals import stratified_difference_interval
from ezgreedy.games.atari.atari100k import published
from ezgreedy.report.markdown_experiment import experiment_page
from ezgreedy.report.page import page
from ezgreedy.report.study import read_study
from ezgreedy.results.runs import read_run
from support.written_runs import write_run

# Five games: with fewer, a claim over games has no verdict.
GAMES = ("MsPacman", "Hero", "Krull", "UpNDown", "Boxing")
DER = {game: published()[game].der for game in GAMES}
RANDOM = {game: published()[game].random_score for game in GAMES}


def written(path, agent, game, seed, score, frames=400_000, reports=(), **changes):
    name = f"{game}-{agent}-{seed}-{frames}".replace("/", "-")
    scale = changes.pop("scale", "atari100k")
    scores = [(frames, score)]
    return write_run(
        path / name,
        scores,
        reports,
        agent=agent,
        game=game,
        scale=scale,
        seed=seed,
        frames=frames,
        **changes,
    )


def agreeing(path, share, agent="rainbow", seeds=3):
    """Runs that score a share of DER's, a little apart."""
    for game, der in DER.items():
        for seed in range(seeds):
            score = RANDOM[game] + share * (der - RANDOM[game])
            written(path, agent, game, seed, score * (1.0 + 0.001 * (seed - 1)))


def claims_of(path, study=atari100k):
    runs = [read_run(directory) for directory in sorted(path.iterdir())]
    return {claim.claim: claim for claim in study.summarise(runs).claims}


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(1.0, "reproduced"), (0.75, "reproduced"), (0.5, "contradicted"), (1.5, "contradicted")],
)
def test_agreement_is_judged_by_the_median_share_of_the_published_scores(share, verdict, tmp_path):
    agreeing(tmp_path, share)
    (claim,) = claims_of(tmp_path).values()
    assert claim.verdict == verdict
    assert claim.numbers["median share of DER"] == pytest.approx(share, rel=0.01)
    assert claim.numbers["games"] == 5


def test_too_few_seeds_and_unfinished_runs_do_not_count(tmp_path):
    agreeing(tmp_path, 1.0, seeds=2)
    assert claims_of(tmp_path) == {}
    # A third run that has not come to its end is no seed.
    write_run(tmp_path / "short", [], agent="rainbow", game="Hero", scale="atari100k", seed=2)
    assert claims_of(tmp_path) == {}


def freeway(path, agent, crossing, seeds=16, first=40_000):
    """Seeds of 30,000 steps, of which some cross from a given frame on."""
    for seed in range(seeds):
        crosses = seed < crossing
        reports = [
            (frames, 1, 21.0 if crosses and frames >= first + 4_000 * seed else 0.0, 0.1)
            for frames in range(4_000, 124_000, 4_000)
        ]
        score = 21.0 if crosses else 0.0
        written(path, agent, "Freeway", seed, score, frames=120_000, reports=reports)


def test_freeway_is_judged_by_fisher_s_test_and_the_log_rank_test(tmp_path):
    freeway(tmp_path, "rainbow-eps", 5)
    freeway(tmp_path, "rainbow-ez", 14)
    freeway(tmp_path, "rainbow-ez-budget", 9)
    crossings, steps = claims_of(tmp_path).values()
    expected = fisher_exact([[14, 2], [5, 11]]).pvalue
    assert crossings.numbers["p, rainbow-ez against rainbow-eps"] == pytest.approx(expected)
    assert crossings.numbers["seeds that cross, rainbow-ez"] == "14 of 16"
    assert (crossings.verdict, steps.verdict) == ("reproduced", "reproduced")
    assert steps.numbers["median steps until then, rainbow-eps"] == "more than 30,000"
    # Seeds cross at 10,000, 11,000, … steps; the median of 16 is between the eighth and ninth.
    assert steps.numbers["median steps until then, rainbow-ez"] == 17_500.0


def test_a_difference_that_chance_can_make_is_undecided_and_one_against_us_is_said(tmp_path):
    freeway(tmp_path / "even", "rainbow-eps", 8)
    freeway(tmp_path / "even", "rainbow-ez", 10)
    crossings, _ = claims_of(tmp_path / "even").values()
    assert crossings.verdict == "undecided"
    freeway(tmp_path / "worse", "rainbow-eps", 15)
    freeway(tmp_path / "worse", "rainbow-ez", 3)
    crossings, steps = claims_of(tmp_path / "worse").values()
    assert crossings.verdict == steps.verdict == "contradicted"


def test_fifteen_seeds_are_not_sixteen(tmp_path):
    freeway(tmp_path, "rainbow-eps", 5, seeds=15)
    freeway(tmp_path, "rainbow-ez", 14)
    assert claims_of(tmp_path) == {}


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "reproduced"), (0.2, "contradicted")])
def test_no_loss_is_judged_by_an_interval_over_runs(share, verdict, tmp_path):
    agreeing(tmp_path, 1.0, "rainbow-eps")
    agreeing(tmp_path, share, "rainbow-ez")
    (claim,) = claims_of(tmp_path).values()
    assert claim.verdict == verdict
    interval = claim.numbers["mean difference"]
    assert interval.low <= interval.value <= interval.high


def test_the_interval_over_strata_is_welch_s_for_one_and_averages_over_several():
    rng = np.random.default_rng(0)
    above, below = rng.normal(1.0, 1.0, 5), rng.normal(0.0, 3.0, 4)
    found = stratified_difference_interval([(above, below)])
    expected = ttest_ind(above, below, equal_var=False).confidence_interval(0.95)
    np.testing.assert_allclose(found[1:], expected, rtol=1e-9)
    twice = stratified_difference_interval([(above, below), (above, below)])
    assert twice.value == pytest.approx(found.value)
    assert twice.high - twice.low < found.high - found.low
    assert stratified_difference_interval([([1.0, 1.0], [1.0, 1.0])])[1:] == (0.0, 0.0)
    with pytest.raises(ValueError, match="strata must hold two samples or more a side"):
        stratified_difference_interval([([1.0], [2.0, 3.0])])


def test_the_interval_over_strata_covers_with_three_samples_a_side():
    """95 % of 4,000 intervals over four strata; the binomial's 5 σ is 1.7 %."""
    rng = np.random.default_rng(1)
    scales = np.array([1.0, 2.0, 0.5, 4.0])
    num_covered = 0
    for _ in range(4_000):
        strata = [(scale * rng.normal(size=3), scale * rng.normal(size=3)) for scale in scales]
        found = stratified_difference_interval(strata)
        num_covered += found.low <= 0.0 <= found.high
    assert num_covered / 4_000 >= 0.95 - 0.017


LAWS = {"Zeta(2.0)": 3.0, "Geometric(0.8)": 2.0, "Uniform(10)": 1.0}


def durations(path, seeds, zeta=3.0):
    for law, score in {**LAWS, "Zeta(2.0)": zeta}.items():
        for seed in range(seeds):
            written(
                path / law[:3],
                "rainbow-ez",
                "deep_sea/20",
                seed,
                score + 0.1 * seed,
                scale="laptop",
                agent__durations=law,
            )
    return [read_run(run) for law in sorted(path.iterdir()) for run in sorted(law.iterdir())]


def test_laws_are_judged_from_five_seeds_on(tmp_path):
    few = deep_durations.summarise(durations(tmp_path / "few", 4))
    assert few.claims == []
    assert len(few.tables[0].rows) == 3
    (claim,) = deep_durations.summarise(durations(tmp_path / "many", 5)).claims
    assert claim.verdict == "reproduced"
    assert claim.numbers["deep_sea/20: zeta − better other family"].value == pytest.approx(1.0)
    (claim,) = deep_durations.summarise(durations(tmp_path / "less", 5, zeta=0.0)).claims
    assert claim.verdict == "contradicted"


def test_judging_writes_what_the_report_shows(tmp_path, capsys):
    agreeing(tmp_path / "runs", 1.0)
    agreeing(tmp_path / "runs", 1.0, "rainbow-eps")
    agreeing(tmp_path / "runs", 1.0, "rainbow-ez")
    freeway(tmp_path / "runs", "rainbow-eps", 5)
    freeway(tmp_path / "runs", "rainbow-ez", 14)
    out = tmp_path / "out"
    assert main(["judge", "atari100k", str(tmp_path / "runs"), "--out", str(out)]) == 0
    assert "4 claims" in capsys.readouterr().out
    summary = json.loads((out / "atari100k" / "summary.json").read_text())
    assert summary["settings"]["agreement"] == [0.7, 1.4]
    for figure in ("scores_by_game.svg", "freeway_crossings.svg"):
        assert (out / "atari100k" / figure).stat().st_size > 1000
    study = read_study(out)
    (finding,) = study.findings
    text = experiment_page(finding, study)
    assert "Final scores after 100,000 steps" in text
    assert "| MsPacman |" in text
    assert "DrQ(ε)" in text
    # Judging again, with more, replaces it.
    assert main(["judge", "atari100k", str(tmp_path / "runs"), "--out", str(out)]) == 0


def test_bad_input_to_judging_is_named(tmp_path, capsys):
    assert main(["judge", "atari-100k", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "did you mean atari100k" in capsys.readouterr().err
    assert main(["judge", "atari100k", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "RUN must be a run of ezgreedy train, or hold runs" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_help_names_all_studies():
    assert tuple(run_studies()) == STUDIES


def test_runs_that_are_there_twice_count_once(tmp_path):
    agreeing(tmp_path / "runs", 1.0)
    study = find("atari100k")
    _, runs = judge(study, [tmp_path / "runs", tmp_path / "runs"], tmp_path / "out")
    assert len(runs) == 15


# What is not judged, and from how many seeds.


def judged(path, study="atari100k"):
    """What judging says about the runs in path/runs; path/out has the results."""
    return main(["judge", study, str(path / "runs"), "--out", str(path / "out")])


def test_judging_says_what_is_missing_for_each_claim(tmp_path, capsys):
    agreeing(tmp_path / "runs", 1.0, seeds=1)
    written(tmp_path / "runs", "rainbow", "Hero", 1, 5_000.0)
    written(tmp_path / "runs", "rainbow-ez", "Hero", 0, 5_000.0)
    written(tmp_path / "runs", "rainbow-eps", "Hero", 0, 5_000.0)
    short = {"agent": "rainbow", "game": "Hero", "scale": "atari100k", "seed": 2}
    write_run(tmp_path / "runs" / "short", [], **short)
    freeway(tmp_path / "runs", "rainbow-ez", 1, seeds=2)
    assert judged(tmp_path) == 0
    first, *lines, _ = capsys.readouterr().out.splitlines()
    assert first == "11 runs (1 not finished), 0 claims"
    assert [line.partition(": ")[0] for line in lines] == ["not judged"] * 4
    assert lines[0].endswith(
        "(no game has 3 finished seeds of rainbow at 400,000 frames; closest: Hero, 2)"
    )
    assert lines[1].endswith("at 120,000 frames; there are 2 and 0)")
    assert lines[3].endswith("and as many of rainbow-eps at 400,000 frames; closest: Hero, 1)")


@pytest.mark.parametrize(
    ("study", "told"),
    [
        ("atari100k", "no game has 3 finished seeds of rainbow at 400,000 frames; there is none"),
        ("deep-durations", "there is none with two laws"),
        ("minatar-stopping", "there are 0 and 0"),
    ],
)
def test_judging_runs_of_other_studies_says_that_none_counts(study, told, tmp_path, capsys):
    write_run(tmp_path / "runs" / "one", [(300, 1.0)], frames=300)
    assert judged(tmp_path, study) == 0
    assert told in capsys.readouterr().out


def test_laws_with_too_few_seeds_name_the_game_that_comes_closest(tmp_path):
    few = deep_durations.summarise(durations(tmp_path, 4))
    assert few.missing[deep_durations.ZETA_IS_BEST.claim].endswith(
        "closest: deep_sea/20, 4 of zeta, 4 of exponential, 4 of uniform"
    )


def test_a_report_has_the_seeds_of_each_condition_and_the_claims_that_lack_runs(tmp_path):
    agreeing(tmp_path / "runs", 1.0, seeds=1)
    written(tmp_path / "runs", "rainbow", "Hero", 4, 5_000.0)  # the fifth seed, but not five
    assert judged(tmp_path) == 0
    study = read_study(tmp_path / "out")
    (finding,) = study.findings
    text = experiment_page(finding, study)
    assert "- 1 to 2 seeds of each agent and game, version" in text
    assert "5 seeds" not in text
    assert text.count("\n- After 100,000 steps our Rainbow scores") == 1
    assert "closest: Hero, 2)" in text
    html = page(study)
    assert "<figcaption>Scores by game.</figcaption>" in html
    assert "<dd>1 to 2 seeds of each agent and game</dd>" in html
    assert html.count("closest: Hero, 2)") == 1
    assert "Not judged yet, because runs are missing:" in html


def test_a_study_whose_claims_are_all_judged_lists_none_as_missing(tmp_path):
    for seed in range(5):
        for rule in ("", "StopOnReward()", "StopOnDiscrepancy(0.1)"):
            stopped(tmp_path / "runs", rule, seed, 1.0 + seed)
    runs = [read_run(directory) for directory in sorted((tmp_path / "runs").glob("*/*"))]
    summary = minatar_stopping.summarise(runs)
    assert summary.missing == {}
    assert minatar_stopping.STUDY.seeds_told(summary) == "5 seeds of each rule"


def test_tables_of_games_tell_the_seeds_of_each_agent(tmp_path):
    agreeing(tmp_path, 1.0, seeds=2)
    written(tmp_path, "rainbow-ez", "Hero", 0, 5_000.0)
    runs = [read_run(directory) for directory in sorted(tmp_path.iterdir())]
    study = find("deep-games")
    assert study.seeds_told(study.summarise(runs)) == "1 to 2 seeds of each agent and game"
    assert study.seeds_told(study.summarise([])) == "no seed that counts"


# Stopping rules on MinAtar.


def stopped(path, rule, seed, score, frames=minatar_stopping.FRAMES, **changes):
    """A finished run of `rainbow-ez` with a rule."""
    name = f"{rule}-{seed}-{len(changes)}"
    changes |= {"agent__stops": rule} if rule else {}
    game, agent = minatar_stopping.GAME, minatar_stopping.AGENT
    reports = [(frames, 3, 1.0, 0.25)]
    written(path / name, agent, game, seed, score, frames, reports, scale="laptop", **changes)


def test_a_rule_is_judged_by_the_welch_interval_against_runs_without(tmp_path):
    with_rule, without = [9.0, 10.0, 11.0, 10.5, 9.5], [4.0, 5.0, 6.0, 5.5, 4.5]
    for seed in range(5):
        stopped(tmp_path, "", seed, without[seed])
        stopped(tmp_path, "StopOnReward()", seed, with_rule[seed])
        stopped(tmp_path, "StopOnReward(0.5)", seed, 100.0)  # another rule
        stopped(tmp_path, "StopOnDiscrepancy(0.1)", seed, 0.1 * without[seed])
    runs = [read_run(directory) for directory in sorted(tmp_path.glob("*/*"))]
    claims = minatar_stopping.summarise(runs).claims
    assert [claim.verdict for claim in claims] == ["reproduced", "contradicted"]
    expected = ttest_ind(with_rule, without, equal_var=False).confidence_interval()
    found = claims[0].numbers["with the rule − without"]
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_control_with_an_equal_share_stands_beside_the_verdict(tmp_path):
    decay = {"agent__epsilon__steps": minatar_stopping.FEWER_STEPS_OF_DECAY}
    for seed in range(5):
        stopped(tmp_path, "", seed, 5.0 + seed)
        stopped(tmp_path, "", seed, 30.0 + seed, **decay)
        stopped(tmp_path, "StopOnDiscrepancy(0.1)", seed, 20.0 + seed)
    runs = [read_run(directory) for directory in sorted(tmp_path.glob("*/*"))]
    (claim,) = minatar_stopping.summarise(runs).claims
    assert claim.verdict == "reproduced"
    assert claim.numbers["with the rule − without"].value == pytest.approx(15.0)
    assert claim.numbers["with the rule − without, equal share"].value == pytest.approx(-10.0)
    assert list(claim.controls.values()) == ["contradicted"]


def test_too_few_seeds_of_a_rule_give_a_table_and_no_verdict(tmp_path):
    for seed in range(5):
        stopped(tmp_path, "", seed, 1.0 + seed)
    stopped(tmp_path, "StopOnReward()", 0, 3.0)
    runs = [read_run(directory) for directory in sorted(tmp_path.glob("*/*"))]
    summary = minatar_stopping.summarise(runs)
    assert summary.claims == []
    assert [row[:2] for row in summary.tables[0].rows] == [("none", 5), ("StopOnReward()", 1)]
