"""`tgsr methods`: the catalogue of transfer methods."""

from __future__ import annotations

import inspect

import click

from tgsr.cli._options import json_option
from tgsr.cli._write import say, say_json


@click.command(name="methods", short_help="List the transfer methods and their options.")
@json_option
def command(as_json: bool) -> None:
    """List the transfer methods, one line each, with their options and defaults.

    An option is given to a transfer as `--option KEY=VALUE`.
    """
    from tgsr.methods import methods, options_of

    found = {
        name: {"what": (inspect.getdoc(kind) or "").partition("\n")[0], "options": options_of(kind())}
        for name, kind in methods().items()
    }
    if as_json:
        say_json(found)
        return
    width = max(map(len, found))
    owners: dict[str, str] = {}
    for name, about in found.items():
        say(f"{name:<{width}}  {about['what']}")
        listed = [f"{option} = {default}" for option, default in about["options"].items()]
        owner = owners.setdefault("\n".join(listed), name)
        for line in listed if owner == name else [f"options as for {owner}"]:
            say(f"{'':<{width}}    {line}")
