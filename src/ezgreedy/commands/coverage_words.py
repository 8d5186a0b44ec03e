"""What `ezgreedy coverage` found, in words: for the terminal and for the page of `ezgreedy report`.

A single trial says nothing about its spread. Its numbers are shown without intervals, and policies
that had one trial each are not compared.
"""

from collections.abc import Mapping
from typing import Any

Interval = Mapping[str, float]


def reference(policies: Mapping[str, Any]) -> str:
    """What the others are compared with: ε-greedy, or else the policy named first."""
    return "eps" if "eps" in policies else next(iter(policies))


def described(settings: Mapping[str, Any], cells: int) -> str:
    """What was run, in words."""
    trials = settings["trials"]
    run = f"{trials} {'trial' if trials == 1 else 'trials'} of {settings['steps']} steps"
    return f"{run}, {cells} cells, ε = {settings['epsilon']:g}"


def shown(interval: Interval, form: str, trials: int) -> str:
    """A mean over trials in words, its numbers in this form, with the interval if there is one."""
    value = form.format(interval["value"])
    if trials == 1:
        return value
    return f"{value} [{form.format(interval['low'])}, {form.format(interval['high'])}]"


def shown_share(interval: Interval, trials: int) -> str:
    """A share in words: t intervals may reach beyond what a share can be."""
    ends = ("value",) if trials == 1 else ("value", "low", "high")
    return shown({end: min(max(interval[end], 0.0), 1.0) for end in ends}, "{:.1%}", trials)


def compared(ratio: Interval, title: str, other: str, trials: int) -> str:
    """A ratio of mean first visits in words, with the policy that covers sooner."""
    told = f"{title} / {other}: {shown(ratio, '{:.3f}', trials)}"
    if trials == 1:
        return told
    if ratio["high"] < 1.0:
        return f"{told}, {title} covers sooner"
    return f"{told}, {f'{other} covers sooner' if ratio['low'] > 1.0 else 'no clear difference'}"


def intervals_explained(trials: int) -> str:
    """What brackets mean, or why there are none."""
    if trials == 1:
        return "One trial has no interval and decides nothing (--trials runs more)"
    return "[ ] are 95 % t intervals over trials, those of shares cut at 0 and 100 %"


def comparison(summary: Mapping[str, Any], cells: int) -> str:
    """All of it, as the terminal shows it.

    Args:
        summary: what coverage.json holds.
        cells: number of cells.
    """
    titles, settings = summary["titles"], summary["settings"]
    policies, trials = summary["policies"], summary["settings"]["trials"]
    wide = max(len(title) for title in titles.values()) + 2
    lines = [
        f"{summary['environment']}: {described(settings, cells)}",
        "",
        f"{'':<{wide}}{'mean steps to first visit':>30}{'cells never visited':>30}",
    ]
    for name, found in policies.items():
        first = shown(found["mean_first_visit"], "{:,.0f}", trials)
        never = shown_share(found["never_visited"], trials)
        lines.append(f"{titles[name]:<{wide}}{first:>30}{never:>30}")
    for told in comparisons(summary):
        lines += ["", told]
    lines.append(intervals_explained(trials))
    return "\n".join(lines)


def comparisons(summary: Mapping[str, Any]) -> list[str]:
    """Every policy against the reference, in words."""
    policies, trials = summary["policies"], summary["settings"]["trials"]
    titles = summary.get("titles", {name: name for name in policies})
    first = reference(policies)
    others = [name for name in policies if name != first]
    return [
        compared(ratio, titles[name], titles[first], trials)
        for name, ratio in zip(others, summary["comparison"].values(), strict=True)
    ]
