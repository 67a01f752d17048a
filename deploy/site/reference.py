"""The site's pages of commands, files, HTTP routes and settings, made of the code.

Usage: python -m deploy.site.reference FOLDER
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collector import settings
from collector.api.access import needed_scope
from collector.serving.app import create_app
from deploy.site import files
from deploy.site.markdown import allowed, cell, page, paragraphs, table
from draftgate import commands
from evals.evaluators.judge import settings as judge


def every_command() -> Iterator[tuple[str, Any]]:  # Any: a click command, as typer bundles it
    """Yield each command with its name, those of a group in the group's place."""
    for name in commands.COMMANDS:
        command = commands.load(name)
        for child, one in getattr(command, "commands", {"": command}).items():
            yield f"draftgate {name} {child}".rstrip(), one


def commands_page() -> str:
    """Return the page of all commands, as their `--help` describes them."""
    parts = [
        "# Commands",
        "`draftgate COMMAND --help` prints the same. [Exit codes](../reference.md#exit-codes)",
    ]
    for name, command in every_command():
        taken = [argument(one) for one in command.params if one.param_type_name == "argument"]
        parts += [f"## `{name}`", f"`{' '.join([name, '[OPTIONS]', *taken])}`"]
        parts += paragraphs(command.help)
        rows = [_option(one) for one in command.params]
        parts.append(table(("Argument or option", "Default", "Meaning"), rows))
    return page(parts)


def http_page() -> str:
    """Return the page of the API's routes, as its OpenAPI document describes them."""
    parts = ["# HTTP", "A running collector describes bodies and answers, too, at `/docs`."]
    document = create_app(settings.Settings()).openapi()
    schemas = document["components"]["schemas"]
    group = ""
    for path, operations in document["paths"].items():
        for method, route in operations.items():
            if route["tags"][0] != group:
                group = route["tags"][0]
                parts.append(f"## {'OTLP' if group == 'otlp' else group.capitalize()}")
            scope = needed_scope(method.upper(), path)
            parts += [
                f"### `{method.upper()} {path}`",
                route["summary"],
                *(paragraphs(route["description"]) if "description" in route else ()),
                f"Needs a key with the scope `{scope}`." if scope else "Needs no key.",
            ]
            rows = [_parameter(one, schemas) for one in route.get("parameters", ())]
            parts.append(table(("Parameter", "Default", "Meaning"), rows))
    return page(parts)


def settings_page() -> str:
    """Return the page of all environment variables."""
    parts = ["# Settings", "Environment variables. An option of a command overrides its variable."]
    collector = [
        (f"`{v.name}`", cell(v.default), cell(v.help)) for v in settings.VARIABLES.values()
    ]
    parts += ["## Of the collector", table(("Variable", "Default", "Meaning"), collector)]
    others, known = dict(commands.VARIABLES), {one.name for one in settings.VARIABLES.values()}
    for _, command in every_command():
        for one in command.params:
            if str(one.envvar).startswith("DRAFTGATE_") and one.envvar not in known:
                others.setdefault(one.envvar, one.help)
    for title, variables in (("commands", others), ("judges", judge.VARIABLES)):
        described = [(f"`{name}`", cell(text)) for name, text in variables.items()]
        parts += [f"## Of {title}", table(("Variable", "Meaning"), described)]
    return page(parts)


def _option(one: Any) -> tuple[str, str, str]:  # Any: a click parameter
    names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    if one.param_type_name == "argument":
        names = f"`{argument(one)}`"
    default = one.opts[0] if one.default is True else one.default
    shown = "required" if one.required else ""
    if not one.required and default not in (None, False):
        shown = f"`{getattr(default, 'value', default)}`"
    variable = f" Variable: `{one.envvar}`." if one.envvar else ""
    return names, shown, cell(one.help) + variable


def argument(one: Any) -> str:  # Any: a click argument
    """Return an argument as the usage line and the table name it."""
    name = (one.metavar or one.name.upper()) + ("..." if one.nargs == -1 else "")
    return name if one.required else f"[{name}]"


def _parameter(one: dict[str, Any], schemas: dict[str, Any]) -> tuple[str, str, str]:
    schema = one["schema"]
    default = schema.get("default")
    shown = "required" if one["required"] else "" if default in (None, []) else f"`{default}`"
    return f"`{one['name']}`", shown, cell(one["description"] + allowed(schema, schemas))


PAGES = {
    "commands.md": commands_page,
    "files.md": files.page_of_files,
    "http.md": http_page,
    "settings.md": settings_page,
}


def main(folder: Path) -> None:
    """Write the pages into the folder, and the JSON schemas of files for editors."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in files.schemas().items():
        (folder / f"{name}.schema.json").write_text(json.dumps(schema, indent=1), encoding="utf-8")
    for name, made in PAGES.items():
        (folder / name).write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
