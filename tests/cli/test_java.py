import os
import subprocess
from pathlib import Path

import pytest

from cerflow.cli.spark.session import java_problem

SCRIPT = Path(__file__).parents[2] / "scripts" / "check-java"


@pytest.fixture
def pretend_java(tmp_path, monkeypatch):
    """A JAVA_HOME whose java says what it is told to say."""

    def pretend(said):
        java = tmp_path / "bin" / "java"
        java.parent.mkdir(exist_ok=True)
        java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    return pretend


def both():
    """What the command line and the script that make calls say."""
    script = subprocess.run([str(SCRIPT)], capture_output=True, text=True, check=False)
    assert (script.returncode == 0) == (script.stderr == "")
    return java_problem() or "", script.stderr


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.2+13-LTS", "25-ea"])
def test_new_enough(pretend_java, version):
    pretend_java(f'openjdk version "{version}" 2025-04-15')
    assert both() == ("", "")


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "16"])
def test_too_old(pretend_java, version):
    pretend_java(f'openjdk version "{version}"')
    for said in both():
        assert f"is version {version}" in said
        assert "nstall Java 17" in said


def test_a_java_that_says_nothing(pretend_java):
    pretend_java("hello")
    for said in both():
        assert "does not report its version" in said


def test_a_home_without_java(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for said in both():
        assert "no bin/java in it" in said


def test_no_java_at_all(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for tool in ("bash", "env", "sed", "head"):
        found = next(p for d in os.environ["PATH"].split(":") if (p := Path(d) / tool).exists())
        (tmp_path / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    for said in both():
        assert "no java on the PATH" in said
