"""The command `tgsr`: which commands there are, and what every way of going wrong looks like.

A command is a module `tgsr.cli._<name>` that defines `command`, and one word in `COMMANDS`. The modules load
nothing heavy before they run, so help is instant.
"""

from __future__ import annotations

import errno
import importlib
import shlex
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from tgsr import __version__
from tgsr._errors import TgsrError, plain
from tgsr.cli._write import say

COMMANDS = (
    "solve", "transfer", "compare", "explain", "show", "predict", "convert", "methods", "study", "reproduce", "doctor",
)  # fmt: skip
INTERNAL, INPUT, INSTALLATION, INTERRUPTED = 1, 2, 3, 130
CORE = frozenset("jax jaxlib optax numpy scipy safetensors rich matplotlib threadpoolctl".split())
_TRACEBACK = "tgsr.traceback"


class Commands(click.Group):
    """Commands are imported when they are named; every error is one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; each has --traceback."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"tgsr.cli._{cmd_name}").command
        for one in (command, *getattr(command, "commands", {}).values()):
            if all(option.name != "traceback" for option in one.params):
                one.params.append(_traceback_option())
        return command

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run `args` (by default those of the process) and leave with the exit code."""
        given = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a terminal that lacks a letter must not end a run
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                code = super().main(given, prog_name, obj=tuple(given), **extra)
            except click.ClickException as error:
                code = _bad_usage(error)
            except click.Abort:  # Ctrl-C before a command began
                code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; only what click itself understands leaves as an exception."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt as error:
            return _interrupted(error, ctx)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # whoever read the output has gone: click leaves in silence
            return _failed(error, bool(ctx.meta.get(_TRACEBACK)))


def _traceback_option() -> click.Option:
    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[_TRACEBACK] = value

    return click.Option(
        ["--traceback"],
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Show where an error came from.",
    )


def _failed(error: Exception, whole: bool) -> int:
    if whole:
        say("".join(traceback.format_exception(error)), err=True)
    if isinstance(error, TgsrError):
        say(f"error: {error}", err=True)
        return error.exit_code
    what = f"{type(error).__name__}: {plain(error)}"
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in CORE:
        say(
            f"error: the installation is not complete ({what}). Install tgsr again, then run `tgsr doctor`.",
            err=True,
        )
        return INSTALLATION
    advice = "" if whole else " Give the same command with --traceback to see where."
    say(f"internal error: {what}.{advice}", err=True)
    return INTERNAL


def _interrupted(error: KeyboardInterrupt, ctx: click.Context) -> int:
    again = f"{ctx.command_path} {shlex.join(ctx.obj)}"
    say(str(error) or "Interrupted; what was saved before stays.", err=True)
    if getattr(error, "path", ctx) is None:
        say("Leave out --no-save to keep runs that can be resumed.", err=True)
    else:
        say(f"To go on: {again}", err=True)
    return INTERRUPTED


def _bad_usage(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    advice = f" Try '{context.command_path} --help'." if context is not None else ""
    say(f"error: {plain(error.format_message(), 1000)}{advice}", err=True)
    return error.exit_code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"warning: {plain(message)}", err=True)


@click.group(name="tgsr", cls=Commands, invoke_without_command=True)
@click.version_option(__version__, message="tgsr %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Recover the unknown constants of a differential equation from measurements.

    Exit codes: 0 fine, 1 a run failed, 2 bad input, 3 the installation is broken, 130 interrupted (give the
    same command again to go on).
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
