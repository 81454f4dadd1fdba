"""The simulated GitHub's refusals, in GitHub's JSON."""

from __future__ import annotations

from typing import Any

DOCUMENTATION = "https://docs.github.com/rest"


class ApiError(Exception):
    """An answer other than success. `errors` is GitHub's list for a 422 or 406, `headers` go out as they are."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: list[dict[str, Any]] | None = None,
        headers: dict[str, str] | None = None,
        documentation: str = DOCUMENTATION,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.headers = headers or {}
        self.documentation = documentation

    def body(self) -> dict[str, Any]:
        listed = {} if self.errors is None else {"errors": self.errors}
        return {
            "message": self.message,
            **listed,
            "documentation_url": self.documentation,
            "status": str(self.status),
        }


def not_found() -> ApiError:
    """What is not there, or not for the caller to know of."""
    return ApiError(404, "Not Found")


def invalid(resource: str, field: str, code: str, message: str | None = None) -> ApiError:
    """A 422 that names the field."""
    told = {} if message is None else {"message": message}
    error = {"resource": resource, "code": code, "field": field, **told}
    return ApiError(422, "Validation Failed", errors=[error])


def malformed(sentence: str) -> ApiError:
    """A 422 by the schema check in front of some resources."""
    return ApiError(422, f"Invalid request.\n\n{sentence}")
