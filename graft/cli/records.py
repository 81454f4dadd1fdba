"""`graft records`: the tools of the intent-record standard, with the judges that need an SDK.

Each command has its own argparse parser, because the same code runs as a vendored script without Click; here its
arguments are only handed on.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import NoReturn

import click

from graft.records import entry, headers, receipt_command


class _Records(click.Group):
    """A group whose commands take their arguments raw, `--help` included."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*headers.COMMANDS, "approve"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"graft.records.{headers.COMMANDS.get(cmd_name, 'approve')}")
        main = _receipt if cmd_name == "receipt" else module.main

        @click.command(
            cmd_name,
            help=module.SUMMARY,
            add_help_option=False,
            context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
        )
        @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
        def command(arguments: tuple[str, ...]) -> NoReturn:
            _exit(main, arguments)

        return command


def _receipt(argv: Sequence[str]) -> int:
    from graft.records import network

    return receipt_command.main(argv, network.ROUTES)


def _exit(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> NoReturn:
    raise SystemExit(entry.run(main, argv))


@click.command(cls=_Records)
def records() -> None:
    """Check intent records: what a person wants, its model, and the evidence for both."""
