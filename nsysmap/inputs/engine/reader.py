"""Opens an engine file in any form that TensorRT's tools write, and turns engines into the declared
tables.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.core.note import Note
from nsysmap.core.plain_json import plain_json
from nsysmap.inputs.engine.layer_info import (
    REBUILD,
    Document,
    documents_of,
    engine_of,
    parse_json,
    parse_json_values,
)
from nsysmap.inputs.engine.model import Engine
from nsysmap.inputs.engine.plan_header import PLAN_MAGIC
from nsysmap.inputs.engine.tool_file import (
    begins_json_list,
    head_of,
    is_binary,
    refuse_other_files,
    text_of,
)

_PLAN_SUFFIXES = {".engine", ".plan", ".trt", ".rtx"}
_TRTEXEC_LOG = re.compile(
    r"^&&&& (?:RUNNING|PASSED|FAILED) TensorRT\.trtexec|=== Performance summary ===", re.MULTILINE
)
_TIMED = re.compile(r"=== Profile \(\d+ iterations")
_NETWORK = re.compile(r"^[ \t]*Layer \d{1,9} +\| .* \[Op: \w+\.\w+\]", re.MULTILINE)


def read_engine(path: str | Path, *, profile: str | Path | None = None) -> Engine:
    """The engine in a file; if the file lists several, the last one, with a note.

    Accepted are `--exportLayerInfo` JSON in any form (such as trex's graph.json), alone or inside
    other text; a log that lists layers one
    per line, under `--- Layer N ---`, as Polygraphy does or only in trtexec's table of their times;
    a serialized .engine or .plan; and text
    compressed with gzip, bzip2 or xz.
    `profile` is a `--exportProfile` file of the same engine; its median times (ns) become
    `Engine.trtexec_ns`.
    Raises NsysmapError if a file is missing, of another kind, cut short or invalid.
    """
    engines = read_engines_in(path)
    engine = engines[-1]
    if len(engines) > 1:
        told = (
            f"the file lists the layers of {len(engines)} different engines; the last one, with"
            f" {len(engine.layers)} layers, is used"
        )
        brief = f"the file lists {len(engines)} engines; the last one is used"
        engine = replace(engine, notes=(*engine.notes, Note("warning", told, brief=brief)))
    if profile is None:
        return engine
    from nsysmap.inputs.engine.profile import with_profile

    return with_profile(engine, profile)


def read_engines_in(path: str | Path) -> tuple[Engine, ...]:
    """Every engine that a file lists, at least one; otherwise as :func:`read_engine`."""
    file = Path(path)
    head = head_of(file)
    refuse_other_files(file, head, "an engine", REBUILD)
    source = str(file)
    if is_binary(head):
        if file.suffix.lower() not in _PLAN_SUFFIXES and not head.startswith(PLAN_MAGIC):
            raise NsysmapError(
                source, "is a binary file, not an engine that TensorRT wrote", REBUILD
            )
        from nsysmap.inputs.engine.inspector import inspect_plan

        inspection = inspect_plan(file)
        documents = documents_of(parse_json(inspection.text, source), source)
        return tuple(
            engine_of(replace(document, tensorrt_version=inspection.version), source)
            for document in documents
        )
    text = text_of(file)
    if _TIMED.search(text):
        from nsysmap.inputs.engine.log import documents_in_log
        from nsysmap.inputs.engine.profile import logged_profile

        if not documents_in_log(text) and (timed := logged_profile(text, source)) is not None:
            return (timed,)
    documents = _documents(text, source)
    return tuple(
        replace(engine_of(document, source), among=source if len(documents) > 1 else "")
        for document in documents
    )


def _documents(text: str, source: str) -> tuple[Document, ...]:
    """The engines in a text: as JSON if it is JSON, otherwise the ones listed in it."""
    stripped = text.strip()
    if not stripped:
        raise NsysmapError(source, "is empty", REBUILD)
    if stripped[0] in '{"' or begins_json_list(stripped):
        values = parse_json_values(stripped, source)
        return tuple(document for value in values for document in documents_of(value, source))
    from nsysmap.inputs.engine.log import documents_in_log

    found = tuple(documents_in_log(text))
    if found:
        return found
    if _TRTEXEC_LOG.search(text):
        what, remedy = (
            "is a trtexec log without layers",
            "add --dumpLayerInfo to that command, or " + REBUILD,
        )
        raise NsysmapError(
            source,
            what,
            remedy + "; nsysmap analyze reads its times with --times, nsysmap layers those of"
            " --dumpProfile with --profile",
        )
    if _NETWORK.search(text):
        raise NsysmapError(
            source,
            "lists the layers of a network before the build, not those of an engine",
            REBUILD,
        )
    if (value := _bare_json(stripped)) is not None:
        return documents_of(value, source)  # which says of what else it is JSON
    raise NsysmapError(
        source, "is neither TensorRT's layer information nor a log that lists layers", REBUILD
    )


def _bare_json(text: str) -> object:
    """The value if the text is JSON after all; otherwise None."""
    try:
        value: object = plain_json(text)
    except (ValueError, RecursionError):
        return None
    return value
