"""The part of SARIF 2.1.0 that the gate writes, as a JSON Schema after OASIS's specification
(sections 3.13 to 3.58).
"""

from __future__ import annotations

from typing import Any


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = _object({"text": _TEXT}, "text")
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_LOCATION = _object(
    {
        "physicalLocation": _object(
            {"artifactLocation": _object({"uri": {"type": "string", "pattern": "^[^ ]+$"}}, "uri")},
            "artifactLocation",
        ),
        "logicalLocations": _array(_object({"fullyQualifiedName": _TEXT, "name": _TEXT})),
    }
)
_RESULT = _object(
    {
        "ruleId": _TEXT,
        "ruleIndex": {"type": "integer", "minimum": -1},
        "level": _LEVEL,
        "message": _MESSAGE,
        "locations": _array(_LOCATION),
        "suppressions": _array(
            _object({"kind": {"enum": ["inSource", "external"]}, "justification": _TEXT}, "kind")
        ),
    },
    "message",
)
_RULE = _object({"id": _TEXT, "shortDescription": _MESSAGE, "help": _MESSAGE}, "id")
_DRIVER = _object({"name": _TEXT, "version": _TEXT, "rules": _array(_RULE)}, "name")
_INVOCATION = _object(
    {
        "executionSuccessful": {"type": "boolean"},
        "exitCode": {"type": "integer"},
        "toolExecutionNotifications": _array(
            _object({"level": _LEVEL, "message": _MESSAGE}, "message")
        ),
    },
    "executionSuccessful",
)
_RUN = _object(
    {
        "tool": _object({"driver": _DRIVER}, "driver"),
        "invocations": _array(_INVOCATION),
        "results": _array(_RESULT),
    },
    "tool",
)

SARIF = _object(
    {"$schema": {"type": "string"}, "version": {"const": "2.1.0"}, "runs": _array(_RUN)},
    "version",
    "runs",
)
