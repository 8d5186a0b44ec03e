"""What do runs on Atari-100k score, beside published scores? The tables of that study."""

from collections.abc import Mapping, Sequence

import numpy as np

from ezgreedy.findings.claims import Number, Table
from ezgreedy.findings.intervals import stratified_difference_interval
from ezgreedy.findings.scores import interquartile_mean
from ezgreedy.games.atari.atari100k import published


def score_tables(
    scores: Mapping[str, Mapping[str, Sequence[float]]], shown: Sequence[str], least_seeds: int
) -> list[Table]:
    """Every game's scores, and their aggregates over games.

    Args:
        scores: final scores by game, then agent, in order of seeds.
        shown: agents to show, if they have scores.
        least_seeds: seeds from which on a mean has an interval.
    """
    known = {game: by_agent for game, by_agent in scores.items() if game in published()}
    if not known:
        return []
    agents = [agent for agent in shown if any(agent in own for own in known.values())]
    rows = []
    for game, by_agent in known.items():
        others = published()[game]
        own = [_score(by_agent.get(agent, ()), least_seeds) for agent in agents]
        seeds = " / ".join(str(len(by_agent.get(agent, ()))) for agent in agents)
        scores_of_others = (others.der, others.drq_eps, others.random_score, others.human_score)
        rows.append((game, *own, seeds, *scores_of_others))
    return [
        Table(
            "Final scores after 100,000 steps",
            ("game", *agents, "seeds", "DER", "DrQ(ε)", "random", "human"),
            rows,
            "Means over seeds of the mean over 100 episodes, with t intervals from three seeds on. "
            "DER: van Hasselt et al. (2019); DrQ(ε): Agarwal et al. (2021).",
        ),
        _aggregates(known, agents),
    ]


def _score(scores: Sequence[float], least_seeds: int) -> Number:
    if not scores:
        return "–"
    if len(scores) < least_seeds:
        return float(np.mean(scores))
    return stratified_difference_interval([(scores, None)])


def _aggregates(
    scores: Mapping[str, Mapping[str, Sequence[float]]], agents: Sequence[str]
) -> Table:
    """Human-normalised scores: agents with the same games, beside DER and DrQ(ε) on them."""
    by_games: dict[tuple[str, ...], list[str]] = {}
    for agent in agents:
        games = tuple(game for game, own in scores.items() if own.get(agent))
        by_games.setdefault(games, []).append(agent)
    rows = []
    for games, alike in by_games.items():
        columns = {
            agent: [float(np.mean(scores[game][agent])) for game in games] for agent in alike
        }
        columns["DER"] = [published()[game].der for game in games]
        columns["DrQ(ε)"] = [published()[game].drq_eps for game in games]
        rows += [_measures(name, games, values) for name, values in columns.items()]
    return Table(
        "Human-normalised scores over games",
        ("agent", "games", "median", "mean", "interquartile mean"),
        rows,
        "Of means over seeds, on the games that were run, beside what was published for the same "
        "games: with so few games this is a check, not a ranking.",
    )


def _measures(name: str, games: Sequence[str], values: Sequence[float]) -> tuple[Number, ...]:
    pairs = zip(games, values, strict=True)
    normalised = np.array([published()[game].human_normalised(value) for game, value in pairs])
    middle = float(interquartile_mean(normalised[:, None]))
    return name, len(games), float(np.median(normalised)), float(normalised.mean()), middle
