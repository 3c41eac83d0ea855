"""The reports of a fleet, and their labels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

from nsysmap.core.errors import NsysmapError
from nsysmap.core.extras import need_extras
from nsysmap.core.records import dataclass
from nsysmap.core.table import MISSING

REPORT_SUFFIXES = (".nsys-rep", ".qdrep", ".sqlite")
DEFAULT_LABELS = (r"(?i:(?<![a-z])rank[-_.]?(?P<rank>\d{1,9}))",)
_USER = re.compile(r"//[^/@]*@")
_QUERY = re.compile(r"(https?://[^\s?'\"]*)\?([^\s'\"]*?)(?=::|['\"\s]|$)", re.IGNORECASE)
# parameters of addresses signed by S3, Google Cloud, CloudFront and Azure, which differ each time
_SIGNING = re.compile(
    r"x-amz-.*|x-goog-.*|awsaccesskeyid|googleaccessid|key-pair-id|policy|signature|expires|(sig|se|st|sp|sv|sr|spr|sks|ske|skt|skv|skoid|sktid)$",
    re.IGNORECASE,
)
_MOST_REPORTS = 10_000_000  # the paths of this many take a few gigabytes
_MOST_LIST_BYTES = 1 << 30  # of a file that lists them


@dataclass(frozen=True)
class Source:
    """One report of a fleet."""

    url: str  # an absolute path, or a URL that fsspec opens
    labels: Mapping[str, str]

    def named_from(self, folder: Path) -> str:
        """Its name in the dataset in that folder: the relative path, or the URL without
        credentials.
        """
        if "://" in self.url or "::" in self.url:
            return without_secrets(self.url)
        return os.path.relpath(self.url, folder)

    def columns(self, key: str, name: str) -> dict[str, object]:
        """The columns about the report in each of its rows in the dataset."""
        rank = self.labels.get("rank", "")
        return {
            "report": name,
            "report_key": key,
            "report_group": self.labels.get("group") or str(PurePosixPath(name).parent),
            "rank": int(rank) if rank.isdecimal() and len(rank) < 19 else MISSING,
            "labels": json.dumps(dict(self.labels), sort_keys=True),
        }


def without_secrets(text: str) -> str:
    """The text with the URLs in it without users, passwords and queries.

    A query is replaced by a digest if it may select the file; parameters that only sign the address
    are dropped.
    """
    return _QUERY.sub(_unqueried, _USER.sub("//", text))


def _unqueried(match: re.Match[str]) -> str:
    meant = sorted(
        one for one in match[2].split("&") if one and not _SIGNING.match(one.partition("=")[0])
    )
    return match[1] + (
        "#" + blake2b("&".join(meant).encode(), digest_size=4).hexdigest() if meant else ""
    )


def sources(given: Sequence[str], patterns: Sequence[str] = ()) -> tuple[Source, ...]:
    """The reports named by these, each once, by path: reports, folders (searched recursively),
    globs, and text files that list them.

    ``patterns`` are regular expressions whose named groups are labels, searched for in the report's
    path.
    Raises NsysmapError if there is none, or a pattern is none.
    """
    compiled = [_compiled(pattern) for pattern in (*DEFAULT_LABELS, *patterns)]
    urls = sorted({_whole(url) for one in given for url in _expanded(one, listed=True)})
    if not urls:
        raise NsysmapError(
            given[0] if given else "reports",
            "names no report",
            f"give reports ({', '.join(REPORT_SUFFIXES)}), a folder, a glob, or a list",
        )
    if len(urls) > _MOST_REPORTS:
        raise NsysmapError(
            given[0],
            f"names {len(urls):,} reports, more than {_MOST_REPORTS:,}",
            "run the fleet in parts",
        )
    return tuple(Source(url, _labels(url, compiled)) for url in urls)


def _whole(url: str) -> str:
    """A name for the report that is the same in every run: a URL, or an absolute path."""
    return url if "://" in url or "::" in url else os.path.abspath(url)  # Path.absolute keeps ".."  # noqa: PTH100


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise NsysmapError(
            f"--label {pattern}",
            f"is not a regular expression ({error})",
            r"write such as 'night(?P<night>\d+)'",
        ) from None
    if not compiled.groupindex:
        raise NsysmapError(
            f"--label {pattern}",
            "has no named group",
            r"name what it finds, such as 'night(?P<night>\d+)'",
        )
    return compiled


def _labels(name: str, patterns: Sequence[re.Pattern[str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pattern in patterns:
        match = pattern.search(name)
        if match is not None:
            found |= {key: value for key, value in match.groupdict().items() if value is not None}
    return found


def _expanded(given: str, *, listed: bool) -> list[str]:
    if "://" in given or "::" in given:
        return _remote(given)
    path = Path(given)
    if path.is_dir():
        # also a link to nothing, which fails alone when it is read
        return [str(found) for found in _inside(path) if found.suffix in REPORT_SUFFIXES]
    if path.suffix in REPORT_SUFFIXES and (path.is_file() or not _is_glob(given)):
        return [given]  # a missing report is noticed when it is read, and fails alone
    if path.is_file() and listed:
        return [url for line in _lines(path) for url in _expanded(line, listed=False)]
    if _is_glob(given):
        anchor = Path(path.anchor) if path.is_absolute() else Path()
        return [
            str(found)
            for found in sorted(anchor.glob(str(path.relative_to(anchor))))
            if not found.is_dir()
        ]
    if path.exists():
        return [given]
    raise NsysmapError(given, "there is no such file or folder", "check the path")


def _inside(folder: Path) -> list[Path]:
    """Everything that is not a folder, in it and in its subfolders. Raises NsysmapError if one of
    them cannot be read, because its reports would be silently missing.
    """

    def unread(error: OSError) -> None:
        raise NsysmapError(
            str(error.filename),
            f"cannot be read ({error.strerror})",
            "make it readable, or name the reports themselves",
        ) from error

    return sorted(
        Path(inside) / name
        for inside, _, names in os.walk(folder, onerror=unread)
        for name in names
    )


def _is_glob(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _lines(path: Path) -> list[str]:
    """The paths that a list names, one a line; those of files from the list's own folder."""
    if path.stat().st_size > _MOST_LIST_BYTES:
        raise NsysmapError(
            str(path),
            "is too long for a list of reports",
            "give the reports themselves, or several lists",
        )
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise NsysmapError(
            str(path),
            "is neither a report nor a list of reports",
            "a list is a text file with one path per line",
        ) from error
    paths = [line for line in lines if line and not line.startswith("#")]
    return [line if "://" in line or "::" in line else str(path.parent / line) for line in paths]


def _remote(url: str) -> list[str]:
    """The reports that fsspec finds at a URL: one report, those in a folder, or those that match a
    glob.
    """
    if "::" in url and not _is_glob(url):
        return [url]
    system, path = file_system(url)
    # in a URL it begins the query
    marked = _is_glob(path.partition("?")[0] if path.startswith(("http://", "https://")) else path)
    try:
        if marked:
            found = system.glob(path)
        elif system.isdir(path):
            found = [one for one in system.find(path) if one.endswith(REPORT_SUFFIXES)]
        else:
            return [url]
    except (OSError, ValueError) as error:
        raise NsysmapError(
            url,
            f"cannot be listed ({type(error).__name__}: {error})",
            "check the address and your access to it",
        ) from error
    return [str(system.unstrip_protocol(one)) for one in found]


def file_system(url: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the path in it."""
    need_extras(url, "fsspec")
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError, OSError) as error:
        raise NsysmapError(
            url,
            f"cannot be opened ({error})",
            "install the file system's own package, such as s3fs or gcsfs",
        ) from error
    return system, str(path)
