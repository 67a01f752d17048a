"""The site's page of the files that users write, and JSON schemas of them for editors.

Both are made of the models that read the files: a field's docstring is its description.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from deploy.site.markdown import allowed, cell, page, prose, table
from engine_adapter.parameters import Parameters
from engine_adapter.router.routes_file import Routes
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.workload import Prompt, SessionRecord
from evals.policy import PolicyFile

Schema = Mapping[str, Any]  # Any: JSON values

FILES: Final = {
    "rollout": ("Rollout file", Rollout),
    "workload": ("Line of a workload file", Prompt | SessionRecord),
    "parameters": ("Parameters of a request", Parameters),
    "routes": ("Routes file of the router", Routes),
    "policy": ("Policy", PolicyFile),
}
_EDITED: Final = ("rollout", "routes", "policy")
"""The YAML files, which editors check by a schema."""


class Described(GenerateJsonSchema):
    """Adds the docstrings of fields; leaves out defaults that are whole sections."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the schema of a model."""
        return _described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Return the schema of a dataclass."""
        return _described(super().dataclass_schema(schema), schema["cls"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema of a field with a default."""
        default = schema.get("default")
        if isinstance(default, BaseModel) or is_dataclass(default):
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def schemas() -> dict[str, Schema]:
    """Return the JSON schemas of the files that editors can check, by name."""
    return {name: schema_of(FILES[name][1]) for name in _EDITED}


class Keys(NamedTuple):
    """The keys of one section of a file."""

    paths: list[str]
    """Where the section stands; empty for the file's top."""
    schema: Schema


def sections(schema: Schema) -> list[Keys]:
    """Return a file's sections from the top down; equal ones once, with all their places."""
    found: list[Keys] = []
    queue = [("", one) for one in _objects(schema, schema["$defs"])]
    for path, section in queue:  # grows on the way
        same = next((s for s in found if s.schema["properties"] == section["properties"]), None)
        if same is None:
            found.append(Keys([path], section))
        elif path not in same.paths:
            same.paths.append(path)
        for key, value in section["properties"].items():
            below = f"{path}.{key}".removeprefix(".")
            queue += [(f"{below}{at}", one) for at, one in _below(value, schema["$defs"])]
    return found


def page_of_files() -> str:
    """Return the page of all keys of all files."""
    parts = ["# Files", "Complete examples are [in the reference](../reference.md#files)."]
    shared = schema_of(Parameters)["properties"]
    for name, (title, model) in FILES.items():
        schema = schema_of(model)
        parts.append(f"## {title}")
        known = {} if name == "parameters" else shared
        every = sections(schema)
        for section in every:
            parts += _headed(section, alone=sum(s.paths == section.paths for s in every) == 1)
            own = {k: v for k, v in section.schema["properties"].items() if known.get(k) != v}
            required = section.schema.get("required", ())
            rows = [row(key, value, schema, needed=key in required) for key, value in own.items()]
            parts.append(table(("Key", "Default", "Meaning"), rows))
            if len(own) < len(section.schema["properties"]):
                parts.append("Also the [parameters of a request](#parameters-of-a-request).")
    return page(parts)


def _headed(section: Keys, *, alone: bool) -> list[str]:
    """Return a section's heading, which names its kind if other kinds may stand there."""
    paths = ", ".join(f"`{path}`" for path in section.paths if path)
    words = prose(section.schema["description"])
    if not alone:
        return [f"### {paths}: {words}".replace("### :", "###").removesuffix(".")]
    return [f"### {paths}" if paths else "", words]


def row(key: str, value: Schema, schema: Schema, *, needed: bool) -> tuple[str, str, str]:
    """Return the table's row of a key."""
    default = value.get("default")
    shown = "" if default is None or default in ([], {}) else f"`{_yaml(default)}`"
    text = cell(value["description"] + allowed(value, schema["$defs"]))
    return f"`{key}`", "required" if needed else shown, text


def _yaml(value: object) -> str:
    """Return a default as YAML's flow style has it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def schema_of(model: Any) -> Schema:  # Any: a type
    """Return the schema of a file's model, with descriptions."""
    schema = TypeAdapter(model).json_schema(schema_generator=Described)
    return {"$defs": {}} | schema


def _resolved(value: Schema, defs: Schema) -> Schema:
    return defs[value["$ref"].rsplit("/", 1)[-1]] if "$ref" in value else value


def _objects(value: Schema, defs: Schema) -> Iterator[Schema]:
    """Yield the sections that may stand for a value."""
    one = _resolved(value, defs)
    if "properties" in one:
        yield one
    for alternative in (*one.get("anyOf", ()), *one.get("oneOf", ())):
        yield from _objects(alternative, defs)


def _below(value: Schema, defs: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the sections under a key: its value's, its items', or those of its own keys."""
    for one in (value, *value.get("anyOf", ())):
        patterns = one.get("patternProperties", {}).values()
        if one is value:
            yield from (("", section) for section in _objects(one, defs))
        yield from (("[]", section) for section in _objects(one.get("items", {}), defs))
        yield from ((".NAME", s) for pattern in patterns for s in _objects(pattern, defs))


def _described(schema: JsonSchemaValue, cls: type) -> JsonSchemaValue:
    """Add the docstrings of the class and its fields to its schema."""
    texts: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        if one not in (BaseModel, object):
            texts |= _docstrings(one)
    schema["description"] = inspect.getdoc(cls)
    fields = cls.model_fields if issubclass(cls, BaseModel) else {}
    for name, text in texts.items():
        key = (fields[name].alias if name in fields else None) or name
        if key in schema["properties"]:
            schema["properties"][key]["description"] = text
    return schema


def _docstrings(cls: type) -> dict[str, str]:
    """Return the docstrings below a class's own fields."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(getattr(tree, "body", ()))
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
