"""What is kept is executed, so it is kept only where nobody else can put anything."""

import logging
import os
from pathlib import Path

import pytest

from cerflow import cache_folder
from cerflow.cache_folder import usable

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has neither owners nor modes")


@pytest.fixture(autouse=True)
def _warn_again():
    cache_folder._warn.cache_clear()


def folder(path, mode):
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702, 0o757])
def test_others_can_write_to_the_folder(tmp_path, mode, monkeypatch, caplog):
    place = folder(tmp_path / "cache", mode)
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(place))
    with caplog.at_level(logging.WARNING, "cerflow"):
        assert cache_folder.cache_folder() is None
        assert cache_folder.cache_folder() is None
    (said,) = caplog.messages
    assert f"nothing is kept in '{place}'" in said
    assert f"others can write to '{place}' (mode {mode:o}" in said


def test_others_can_replace_a_folder_above(tmp_path, caplog):
    above = folder(tmp_path / "above", 0o777)
    with caplog.at_level(logging.WARNING, "cerflow"):
        assert usable(above / "cache") is None
    assert f"others can write to '{above}'" in caplog.text
    # Where only owners can replace what is there, others cannot.
    above.chmod(0o1777)
    assert usable(above / "cache") == above / "cache"
    assert (above / "cache").stat().st_mode & 0o777 == 0o700


def test_links_are_followed_first(tmp_path):
    open_, own = folder(tmp_path / "open", 0o777), folder(tmp_path / "own", 0o755)
    (own / "link").symlink_to(open_)
    assert usable(own / "link") is None
    (open_ / "link").symlink_to(own)
    # What is used is where the link led when it was looked at.
    assert usable(open_ / "link") == own
    (own / "circle").symlink_to(own / "circle")
    assert usable(own / "circle") is None


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give folders away")
def test_the_folder_of_somebody_else(tmp_path, caplog):
    place = folder(tmp_path / "cache", 0o755)
    os.chown(place, 12345, -1)
    with caplog.at_level(logging.WARNING, "cerflow"):
        assert usable(place) is None
        assert usable(place / "below") is None
    assert f"'{place}' belongs to the user with number 12345" in caplog.text


def test_the_group_of_the_user_alone(tmp_path, monkeypatch):
    place = folder(tmp_path / "cache", 0o775)
    monkeypatch.setattr(cache_folder, "_is_private", lambda group: True)
    assert usable(place) == place
    monkeypatch.setattr(cache_folder, "_is_private", lambda group: False)
    assert usable(place) is None


def test_places_in_their_order(tmp_path, monkeypatch):
    monkeypatch.delenv("CERFLOW_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    assert cache_folder.cache_folder() == tmp_path / "users" / "cerflow"
    # A folder of the user's that is open to others is not used; one in the folder for temporary files is.
    (tmp_path / "users" / "cerflow").chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(folder(tmp_path / "temporary", 0o1777)))
    expected = tmp_path / "temporary" / f"cerflow-{os.getuid()}"
    assert cache_folder.cache_folder() == expected
    expected.rmdir()
    expected.symlink_to(folder(tmp_path / "others", 0o755))
    assert cache_folder.cache_folder() is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert cache_folder.cache_folder() is None
    assert not list(Path(tmp_path / "others").iterdir())
