"""What is kept is executed, so it is kept only where nobody else can put anything."""

import logging
import os
from pathlib import Path

import pytest

from cerflow import cache_folder
from cerflow.cache_folder import open_own, usable
from cerflow.language.parser_tables import parser_of

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has neither owners nor modes")


@pytest.fixture(autouse=True)
def _warn_again():
    cache_folder._warn.cache_clear()
    cache_folder._distrusted.clear()


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
    assert f"no cache is kept in '{place}'" in said
    assert f"'{place}' can be written by others (mode {mode:o}): delete '{place}'" in said
    assert "chmod" not in said


def test_others_can_replace_a_folder_above(tmp_path, caplog):
    above = folder(tmp_path / "above", 0o777)
    with caplog.at_level(logging.WARNING, "cerflow"):
        assert usable(above / "cache") is None
    assert f"'{above}' can be written by others (mode 777): choose another folder, or close '{above}'" in caplog.text
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


def change(path, how):
    data = path.read_bytes()
    path.unlink()
    if how == "link":
        path.with_name("elsewhere").write_bytes(data)
        path.symlink_to(path.with_name("elsewhere"))
    elif how == "second name":
        path.with_name("elsewhere").write_bytes(data)
        path.hardlink_to(path.with_name("elsewhere"))
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    else:
        path.write_bytes(data)
        path.chmod(0o666 if how == "mode" else 0o600)
        if how == "owner":
            if os.getuid() != 0:
                pytest.skip("only root can give files away")
            os.chown(path, 12345, -1)


REASONS = {
    "link": "is a link",
    "second name": "has another name elsewhere",
    "pipe": "is not a regular file",
    "folder": "is not a regular file",
    "mode": "can be written by others (mode 666)",
    "owner": "belongs to the user with number 12345",
}


@pytest.mark.parametrize("how", REASONS)
def test_files_that_others_may_have_put_there_are_not_read(tmp_path, how, caplog):
    own = tmp_path / "code"
    own.write_bytes(b"planted")
    with open_own(own) as file:
        assert file.read() == b"planted"
    assert open_own(tmp_path / "nothing") is None
    assert not caplog.messages
    change(own, how)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    assert open_own(own) is None
    assert open_own(own) is None
    assert not before or len(os.listdir("/proc/self/fd")) == before
    (said,) = caplog.messages
    assert f"'{own}' is not read, because it {REASONS[how]}" in said
    assert said.endswith(f"delete '{tmp_path}'")


@pytest.mark.parametrize("how", [how for how in REASONS if how != "folder"])
def test_tables_of_others_are_made_again(tmp_path, monkeypatch, how, caplog):
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path / "tables"))
    grammar = 'start: "a"\n'
    parser_of("tiny", grammar, ("start",), None)
    (kept,) = (tmp_path / "tables").iterdir()
    change(kept, how)
    parser_of("tiny", grammar, ("start",), None)
    assert f"'{kept}' is not read, because it {REASONS[how]}" in caplog.text
    assert kept.is_file()
    assert not kept.is_symlink()


def test_a_file_where_a_folder_is_asked_for(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name in ("file", "file/below", "circle"):
        monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path / name))
        caplog.clear()
        assert cache_folder.cache_folder() is None
        (said,) = caplog.messages
        assert said.startswith(f"no cache is kept in '{tmp_path / name}', which CERFLOW_CACHE_DIR names: ")


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
