"""The OpenAPI 3.1 document of a door, made from its operations and the models of `ibrik_api`."""

from collections.abc import Iterable
from typing import Any

from ibrik_api import __version__
from ibrik_api.errors import CODES
from ibrik_api.http import Problem, component_schemas
from ibrik_broker.http.operations import Answer, Body, Operation, Parameter, Shape
from ibrik_broker.http.problems import MEDIA_TYPE

Document = dict[str, Any]

COMMON_CODES = ("invalid-request", "headers-too-large", "internal", "too-many-connections")
"""What any request may be answered with."""
CHANGE_CODES = ("foreign-origin",)
"""What any request that is no GET may be answered with besides."""
BODY_CODES = (
    "body-not-decodable",
    "expectation-failed",
    "unsupported-encoding",
    "request-timeout",
    "request-too-large",
    "compression-bomb",
    "buffer-full",
)
"""What any request with a body may be answered with besides."""


def build_document(title: str, description: str, operations: Iterable[Operation]) -> Document:
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": __version__,
            "description": description,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": _without_kubernetes(component_schemas()),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _without_kubernetes(schema: Any) -> Any:
    """Drop rules in CEL, which are the API server's, and `format: duration`.

    To Kubernetes a duration is `7d`, to JSON Schema it is `P7D` of ISO 8601.
    """
    match schema:
        case dict():
            return {
                key: _without_kubernetes(value)
                for key, value in schema.items()
                if (key, value) != ("format", "duration") and key != "x-kubernetes-validations"
            }
        case list():
            return [_without_kubernetes(item) for item in schema]
        case _:
            return schema


def codes_of(operation: Operation) -> list[str]:
    """Every error code that an operation may answer with."""
    codes = {*operation.codes, *COMMON_CODES}
    if operation.method != "GET":
        codes |= set(CHANGE_CODES)
    if operation.bodies:
        codes |= set(BODY_CODES)
    return sorted(codes)


def _operation(operation: Operation) -> Document:
    described: Document = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": _answers(operation),
    }
    if operation.description:
        described["description"] = operation.description
    if operation.parameters:
        described["parameters"] = [_parameter(parameter) for parameter in operation.parameters]
    if operation.bodies:
        described["requestBody"] = {
            "required": operation.is_body_required,
            "content": _content(operation.bodies),
        }
    if operation.needs_token:
        described["security"] = [{"token": []}, {}]  # {}: open on loopback without a token file
    return described


def _parameter(parameter: Parameter) -> Document:
    described: Document = {
        "name": parameter.name,
        "in": parameter.where,
        "description": parameter.description,
        "required": parameter.where == "path" or parameter.required,
        "schema": dict(parameter.shape),
    }
    if parameter.example is not None:
        described["example"] = parameter.example
    return described


def _answers(operation: Operation) -> Document:
    answers = {str(answer.status): _answer(answer) for answer in operation.answers}
    by_status: dict[int, list[str]] = {}
    for code in codes_of(operation):
        by_status.setdefault(CODES[code].status, []).append(code)
    for status, codes in sorted(by_status.items()):
        lines = "; ".join(f"`{code}`: {CODES[code].cause}" for code in codes)
        answers[str(status)] = {
            "description": lines,
            "content": {MEDIA_TYPE: {"schema": _schema(Problem)}},
        }
    return answers


def _answer(answer: Answer) -> Document:
    described: Document = {"description": answer.description}
    if answer.bodies:
        described["content"] = _content(answer.bodies)
    if answer.headers:
        described["headers"] = {
            name: {"description": text, "schema": {"type": "string"}}
            for name, text in answer.headers.items()
        }
    return described


def _content(bodies: Iterable[Body]) -> Document:
    content: Document = {}
    for body in bodies:
        content[body.media_type] = {"schema": _schema(body.shape)}
        if body.example is not None:
            content[body.media_type]["example"] = body.example
    return content


def _schema(shape: Shape) -> Document:
    if isinstance(shape, type):
        return {"$ref": f"#/components/schemas/{shape.__name__}"}
    return dict(shape)
