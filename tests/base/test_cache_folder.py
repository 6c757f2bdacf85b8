"""What is kept is executed, so it is kept only where nobody else can put anything."""

import logging
import os
from pathlib import Path

import pytest

from cerflow.base import cache_folder
from cerflow.base.cache_folder import keep, open_own
from cerflow.language.grammar.kept_parsers import parser_of

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has neither owners nor modes")


@pytest.fixture(autouse=True)
def _warn_again():
    cache_folder._warn.cache_clear()


def folder(path, mode):
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702, 0o757, 0o775])
def test_others_can_write_to_the_folder(tmp_path, mode, monkeypatch, caplog):
    place = folder(tmp_path / "cache", mode)
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(place))
    with caplog.at_level(logging.WARNING, "cerflow"):
        assert cache_folder.cache_folder() is None
        assert cache_folder.cache_folder() is None
    (said,) = caplog.messages
    assert said.startswith(f"no cache is kept in '{place}': it can be written by others (mode {mode:o}); delete it")
    assert "chmod" not in said


def named(monkeypatch, place):
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(place))
    return cache_folder.cache_folder()


def test_the_folder_is_made_for_its_user_alone(tmp_path, monkeypatch):
    above = folder(tmp_path / "above", 0o1777)
    assert named(monkeypatch, above / "a" / "cache") == above / "a" / "cache"
    assert (above / "a" / "cache").stat().st_mode & 0o777 == 0o700


def test_links_are_followed_first(tmp_path, monkeypatch):
    open_, own = folder(tmp_path / "open", 0o777), folder(tmp_path / "own", 0o755)
    (own / "link").symlink_to(open_)
    assert named(monkeypatch, own / "link") is None
    (open_ / "link").symlink_to(own)
    # What is used is where the link led when it was looked at.
    assert named(monkeypatch, open_ / "link") == own
    (own / "circle").symlink_to(own / "circle")
    assert named(monkeypatch, own / "circle") is None


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give folders away")
def test_the_folder_of_somebody_else(tmp_path, monkeypatch, caplog):
    place = folder(tmp_path / "cache", 0o755)
    os.chown(place, 12345, -1)
    assert named(monkeypatch, place) is None
    assert f"'{place}': it belongs to the user with number 12345" in caplog.text


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give folders away")
def test_a_folder_that_others_put_in_its_place_gives_nothing(tmp_path, monkeypatch, caplog):
    place = named(monkeypatch, tmp_path / "cache")
    place.rename(tmp_path / "moved")
    folder(tmp_path / "cache", 0o755)
    (place / "code").write_bytes(b"planted")
    for planted in (place, place / "code"):
        os.chown(planted, 12345, -1)
    assert cache_folder.cache_folder() is None
    # Even between the look at the folder and that at the file.
    assert open_own(place / "code") is None
    assert f"'{place / 'code'}' is not read" in caplog.text


def test_files_are_kept_whole_and_for_their_user(tmp_path):
    before = os.umask(0)
    try:
        keep(tmp_path / "code", b"one")
        keep(tmp_path / "code", b"two")
    finally:
        os.umask(before)
    assert (tmp_path / "code").read_bytes() == b"two"
    assert (tmp_path / "code").stat().st_mode & 0o777 == 0o644
    assert [file.name for file in tmp_path.iterdir()] == ["code"]
    with pytest.raises(FileNotFoundError):
        keep(tmp_path / "nowhere" / "code", b"one")


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
    "second name": "is not a regular file with one name",
    "pipe": "is not a regular file with one name",
    "folder": "is not a regular file with one name",
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


def test_links_are_not_read(tmp_path):
    own = tmp_path / "code"
    own.write_bytes(b"planted")
    change(own, "link")
    assert own.read_bytes() == b"planted"
    assert open_own(own) is None


@pytest.mark.parametrize("how", ["link", *(how for how in REASONS if how != "folder")])
def test_tables_of_others_are_made_again(tmp_path, monkeypatch, how, caplog):
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path / "tables"))
    grammar = 'start: "a"\n'
    parser_of("tiny", grammar, ("start",), None)
    (kept,) = (tmp_path / "tables").iterdir()
    change(kept, how)
    parser_of("tiny", grammar, ("start",), None)
    if how in REASONS:
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
        assert said.startswith(f"no cache is kept in '{tmp_path / name}': ")


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
