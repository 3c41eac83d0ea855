"""The documentation as a site: it builds, and its links lead somewhere there too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.places import ROOT

pytest.importorskip("mkdocs", reason="mkdocs is not installed")


def built(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=folder,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_link_of_the_site_leads_to_a_file_of_it(tmp_path: Path) -> None:
    done = built(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    links = {
        (page, unescape(link))
        for page in (tmp_path / "site").rglob("*.html")
        if page.name != "404.html"  # its links are absolute
        for link in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8"))
    } | {
        (tmp_path / "site" / "llms.txt", link)
        for link in re.findall(r"\]\(([^)]+)\)", (tmp_path / "site" / "llms.txt").read_text())
    }
    dead = []
    for page, link in links:
        if re.match(r"[a-z]+:", link):
            continue
        to = page.parent / unquote(link)
        if not (to / "index.html" if to.is_dir() else to).is_file():
            dead.append(f"{page.relative_to(tmp_path)}: {link}")
    assert sorted(dead) == []
    assert len(links) > 1000


@pytest.mark.parametrize("link", ["[a](nowhere.md)", "[a](../nowhere.toml)", "[a](nowhere/)"])
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# A page\n\n{link}\n")
    (tmp_path / "docs" / "site_links.py").symlink_to(ROOT / "docs" / "site_links.py")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text(config[: config.index("nav:")])
    done = built(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere" in done.stderr
