"""The JSON Schema of graft.yaml, for editors.

It tells an editor what may stand where; `graft policy check` knows more (whether a glob has a meaning, whether
two rules share a name, whether a rule can match at all).
"""

from __future__ import annotations

from typing import Any

from graft.globs import MAX_GLOB_LENGTH
from graft.policy.fields import MAX_LIST, MAX_NUMBER
from graft.policy.model import AUTHORS, RECORDS, SOURCES, Outcome
from graft.policy.parse import MAX_COUNT, MAX_MESSAGE, MAX_NAME, MAX_RULES
from graft.risk import Risk

Schema = dict[str, Any]


def json_schema() -> Schema:
    """A new schema document, draft 7 (what YAML language servers read)."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "graft.yaml",
        "description": "What a repository's rules would decide about a pull request. Graft only reports it.",
        **_object(
            {
                "version": {"const": 1, "description": "The version of this format."},
                "sensitive_paths": {
                    **_several(_GLOB, empty=True),
                    "description": "Files whose change always counts as sensitive, in addition to Graft's own list.",
                },
                "rules": {
                    "type": "array",
                    "maxItems": MAX_RULES,
                    "description": "Asked in order; the first whose conditions all hold decides.",
                    "items": _object(
                        {
                            "name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
                            "when": _when(),
                            "then": _then(),
                        },
                        required=("name", "when", "then"),
                    ),
                },
                "default": {
                    **_then(),
                    "description": "Decides where no rule matches; `review` if it is left out.",
                },
            },
            required=("version",),
        ),
    }


def _when() -> Schema:
    return _object(
        {
            "author": {**_several({"enum": list(AUTHORS)}), "description": "Who wrote the change."},
            "source": {**_several({"enum": list(SOURCES)}), "description": "How the author is known."},
            "agents": _matcher("Globs over the names of the agents that took part."),
            "models": _matcher("Globs over the names of the models that took part."),
            "max_risk": {"enum": list(Risk), "description": "The highest risk that still matches."},
            "card_verified": _boolean("Whether every claim of the intent card was confirmed."),
            "paths": _matcher("Globs over changed files; a renamed file counts with both names."),
            "min_files": _number("The least number of changed files."),
            "max_files": _number("The greatest number of changed files."),
            "min_lines": _number("The least number of added and deleted lines."),
            "max_lines": _number("The greatest number of added and deleted lines."),
            "labels": {
                "anyOf": [
                    _several(_LABEL),
                    _some_of({key: _several(_LABEL) for key in ("any", "all", "none")}),
                ],
                "description": "Labels of the pull request; a name or list alone is short for `any`.",
            },
            "base": {**_several(_GLOB), "description": "Globs over the branch that is merged into."},
            "task_linked": _boolean("Whether the commits name a task."),
            "draft": _boolean("Whether the pull request is a draft."),
            "records": {**_several({"enum": list(RECORDS)}), "description": "State of the intent records."},
        },
        description="Conditions, all of which must hold; `{}` matches every change.",
    )


def _then() -> Schema:
    message = {"type": "string", "minLength": 1, "maxLength": MAX_MESSAGE}
    review = {
        "users": _several({"type": "string", "description": "A GitHub login."}),
        "teams": _several({"type": "string", "description": "`organisation/team`."}),
        "count": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT},
        "message": message,
    }
    details = {
        outcome.value: _object(review if outcome is Outcome.REVIEW else {"message": message})
        for outcome in Outcome
    }
    return {"anyOf": [{"enum": list(Outcome)}, {**_object(details), "minProperties": 1, "maxProperties": 1}]}


_GLOB: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_GLOB_LENGTH}
_LABEL: Schema = {"type": "string", "minLength": 1, "maxLength": 100}


def _object(properties: dict[str, Schema], *, required: tuple[str, ...] = (), **more: Any) -> Schema:
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": properties, **more}
    return {**schema, "required": list(required)} if required else schema


def _some_of(properties: dict[str, Schema]) -> Schema:
    return {**_object(properties), "minProperties": 1}


def _several(item: Schema, *, empty: bool = False) -> Schema:
    many = {"type": "array", "items": item, "minItems": 0 if empty else 1, "maxItems": MAX_LIST}
    return {"anyOf": [item, many]}


def _matcher(description: str) -> Schema:
    return {**_some_of({key: _several(_GLOB) for key in ("any", "only", "none")}), "description": description}


def _number(description: str) -> Schema:
    return {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER, "description": description}


def _boolean(description: str) -> Schema:
    return {"type": "boolean", "description": description}
