"""Structs whose fields are read from environment variables: each field names its variable once, how it is read and
what it means. All problems are reported together, by name and never with a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct

from graft import values
from graft.errors import ConfigError


class Variable(Struct, frozen=True, kw_only=True):
    """How one setting is written: `parse` raises ValueError with a reason that does not hold the value.

    Without a `default` (a text, as if it stood in the environment) the variable is `required` or absent.
    """

    name: str
    parse: Callable[[str], Any]
    doc: str
    default: str | None = None
    required: bool = False
    secret: bool = False


def from_variable(name: str, parse: Callable[[str], Any], doc: str, **how: Any) -> Variable:
    """The annotation of a field that comes from this variable."""
    return Variable(name=name, parse=parse, doc=doc, **how)


_T = TypeVar("_T", bound="Environment")


class Environment(Struct, frozen=True, kw_only=True):
    """A struct whose fields are read from the variables they are annotated with."""

    @classmethod
    def from_env(cls: type[_T], environment: Mapping[str, str]) -> _T:
        """Read the settings; empty and blank variables count as unset.

        Raises ConfigError with all problems.
        """
        problems: list[str] = []
        fields: dict[str, Any] = {}
        for field, variable in variables(cls).items():
            text = environment.get(variable.name, "")
            if not text.strip():
                if variable.required:
                    problems.append(f"{variable.name}: not set. {variable.doc}")
                    continue
                if variable.default is None:
                    continue
                text = variable.default
            try:
                fields[field] = variable.parse(text)
            except values.Invalid as invalid:
                problems += [f"{variable.name}: {reason}" for reason in invalid.reasons]
        if not problems:
            settings = cls(**fields)
            problems += settings.contradictions()
        if problems:
            raise ConfigError(problems)
        return settings

    def contradictions(self) -> list[str]:
        """Problems of values that are fine one by one."""
        return []


def variables(settings: type[Struct]) -> dict[str, Variable]:
    """Each field that comes from a variable, in the order of the struct."""
    found = {}
    for field, hint in get_type_hints(settings, include_extras=True).items():
        if get_origin(hint) is Annotated:
            for extra in get_args(hint)[1:]:
                if isinstance(extra, Variable):
                    found[field] = extra
    return {field: found[field] for field in settings.__struct_fields__ if field in found}
