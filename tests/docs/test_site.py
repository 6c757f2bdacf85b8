"""The manual becomes a site without a warning, and the site needs no network."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="MkDocs is not installed")
pytest.importorskip("material", reason="MkDocs Material is not installed")

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def test_every_page_has_its_place():
    yaml = pytest.importorskip("yaml")
    named = set(re.findall(r"[\w./-]+\.md", json.dumps(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert named - {"contributing.md", "changelog.md"} == pages


def test_the_language_by_example(tmp_path):
    """`scripts/draw-examples` would write the same page and pictures again."""
    subprocess.run([sys.executable, ROOT / "scripts" / "draw-examples", tmp_path], check=True, timeout=300)
    made = {file.relative_to(tmp_path): file.read_text("utf-8") for file in tmp_path.rglob("*") if file.is_file()}
    assert len(made) > 150
    for name, text in made.items():
        if name.stem.endswith("-automaton"):  # Graphviz's wheels may lay these out otherwise
            assert (ROOT / "docs" / name).exists()
            continue
        assert (ROOT / "docs" / name).read_text("utf-8") == text, name


@pytest.mark.slow
@pytest.mark.long
def test_the_site(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]*)"', page.read_text("utf-8"))
        assert loaded == [], page
    assert "skip_till" in (tmp_path / "site" / "search" / "search_index.js").read_text("utf-8")
