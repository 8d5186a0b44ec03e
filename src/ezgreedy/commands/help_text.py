"""How help texts show defaults."""

import argparse


class DefaultsShown(argparse.ArgumentDefaultsHelpFormatter):
    """Adds an option's default to its help, unless there is none."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default is None else super()._get_help_string(action)
