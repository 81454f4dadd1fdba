"""`graft`: local tools and the daemon's entry points.

Commands are imported when they are called, so that `graft review` never waits for the daemon's libraries.
"""

from __future__ import annotations

import importlib

import click

from graft import __version__

# command -> (module, attribute, one line for --help)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "review": ("graft.cli.review", "review", "Analyse a range of a local git repository."),
    "policy": ("graft.cli.policy", "policy", "Check, explain and simulate graft.yaml."),
    "records": ("graft.cli.records", "records", "Check intent records, their model and their evidence."),
    "eval": ("graft.cli.eval", "eval_", "Measure intent cards on cases with a known truth."),
    "hook": ("graft.cli.hook", "hook", "Install the git hook that writes Graft trailers."),
    "setup": ("graft.cli.setup", "setup", "Register the GitHub App and write its credentials."),
    "serve": ("graft.cli.daemon", "serve", "Run ingress and actors."),
    "ingress": ("graft.cli.ingress", "ingress", "Run the ingress alone; it needs no database."),
    "actors": ("graft.cli.daemon", "actors", "Run the actors alone."),
    "migrate": ("graft.cli.daemon", "migrate", "Create or upgrade the database schema."),
    "gate": ("graft.cli.gate", "gate", "Decide whether intent cards are accurate enough."),
    "incident": ("graft.cli.incident", "incident", "Add, list and remove escaped defects."),
    "baseline": ("graft.cli.review_times", "baseline", "Measure review time before Graft."),
    "shadow": ("graft.cli.review_times", "shadow", "Measure review time with Graft."),
    "metrics": ("graft.cli.metrics", "metrics", "Print the daily numbers."),
    "report": ("graft.cli.report", "report", "Write the pilot report."),
    "doctor": ("graft.cli.doctor", "doctor", "Say what is wrong with this installation, and what to do."),
    "purge": ("graft.cli.purge", "purge", "Remove everything of one installation."),
    "up": ("graft.cli.up", "up", "Run everything here with embedded NATS and Postgres."),
    "e2e": ("graft.cli.e2e", "e2e", "See from outside whether a running Graft does what it says."),
    "demo": ("graft.cli.demo", "demo", "Show the whole path on a simulated GitHub."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and imports one only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.command(cls=LazyGroup)
@click.version_option(__version__, prog_name="graft")
def main() -> None:
    """Say what a pull request really does, who wrote it, and what your rules would decide."""
