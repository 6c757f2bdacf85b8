"""Who gets into the studio: whoever has the token, whatever cookies other programs of the machine have left."""

import asyncio
import stat
import threading
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="NiceGUI is not installed (cerflow[studio])")

from cerflow.studio import server
from cerflow.studio.server import Guarded
from cerflow.studio.session import StudioSession

TOKEN = "a-token"
COOKIE = "cerflow_studio_8000=a-token"


async def application(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})


def answer(headers, query=b"", path="/", kind="http", arrived=lambda: None):
    """The first message that a request gets."""
    sent = []

    async def send(message):
        sent.append(message)

    pairs = [(name, value.encode("latin-1")) for name, value in headers]
    scope = {"type": kind, "path": path, "query_string": query, "headers": pairs}
    asyncio.run(Guarded(application, TOKEN, 8000, arrived)(scope, None, send))
    return sent[0]


def status(host="127.0.0.1:8000", cookies=(), **more):
    return answer([(b"host", host), *((b"cookie", one) for one in cookies)], **more)["status"]


@pytest.mark.parametrize(
    "other",
    ['prefs={"a": 1, "b": [2]}', "x/y=1", "foo=a b", "expires", "k[x]=1", "bad=\xff\x00", '"open=1', "=", "", "a=b=c"],
)
def test_cookies_of_other_programs_do_not_matter(other):
    assert status(cookies=[f"{other}; {COOKIE}"]) == 200
    assert status(cookies=[f"{COOKIE};{other}"]) == 200
    assert status(cookies=[other, COOKIE]) == 200
    assert status(cookies=[other]) == 403
    # A wrong cookie of our name before ours, as for another path, is none.
    assert status(cookies=[f"cerflow_studio_8000=old; {other}; {COOKIE}"]) == 200


def test_the_cookie_has_to_be_whole():
    for cookie in ("cerflow_studio_8000=a-toke", "cerflow_studio_8000", "xcerflow_studio_8000=a-token", "a-token"):
        assert status(cookies=[cookie]) == 403
    assert status(cookies=[COOKIE.replace("8000", "9000")]) == 403


@pytest.mark.parametrize(
    "host",
    ["[::1", "[::1]:8000", "[v1.x]", "", "evil.example", "127.0.0.1.evil.example", "me@127.0.0.1", "127.0.0.1:x"],
)
def test_other_hosts_are_refused_whatever_they_are(host):
    assert status(host) == 403
    assert status(host, [COOKIE], query=b"token=a-token") == 403


def test_one_host_and_our_origin():
    assert status("localhost:8000", [COOKIE]) == 200
    assert answer([(b"cookie", COOKIE)])["status"] == 403
    assert answer([(b"host", "localhost"), (b"host", "evil.example"), (b"cookie", COOKIE)])["status"] == 403
    ours = [(b"host", "localhost:8000"), (b"cookie", COOKIE)]
    assert answer([*ours, (b"origin", "http://localhost:8000")])["status"] == 200
    for origin in ("null", "http://localhost:8001", "https://localhost:8000", ""):
        assert answer([*ours, (b"origin", origin)])["status"] == 403
    assert answer([(b"host", "localhost")], kind="websocket") == {"type": "websocket.close", "code": 1008}


def test_no_page_of_others_shows_the_studio_in_a_frame():
    host = (b"host", "127.0.0.1:8000")
    for query in (b"", b"token=a-token"):
        found = answer([host, (b"cookie", COOKIE)], query)["headers"]
        assert (b"content-security-policy", b"frame-ancestors 'none'") in found
    found = answer([host, (b"cookie", COOKIE)], path="/matches")["headers"]
    assert (b"content-security-policy", b"frame-ancestors 'self'") in found


def test_the_token_becomes_a_cookie():
    arrived = []
    found = answer([(b"host", "127.0.0.1:8000")], b"token=a-token", arrived=lambda: arrived.append(1))
    assert (b"set-cookie", f"{COOKIE}; HttpOnly; SameSite=Strict; Path=/".encode()) in found["headers"]
    assert arrived == [1]
    answer([(b"host", "127.0.0.1:8000"), (b"cookie", COOKIE)], arrived=lambda: arrived.append(2))
    assert status(query=b"token=other") == 403
    assert arrived == [1]


@pytest.mark.parametrize("home", ["there", "missing"])
def test_the_browser_gets_a_file_without_the_token_in_its_name(tmp_path, monkeypatch, home):
    """The page is opened from a file that only the user reads, and that is gone at the end."""
    (tmp_path / "there").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / home))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened, told, ran = [], [], threading.Event()

    class Server:
        def __init__(self, config):
            self.guarded = config.app

        def run(self, sockets):
            assert ran.wait(60)
            for one in sockets:
                one.close()

    def open_browser(address):
        path = Path(address.removeprefix("file://"))
        opened.append((address, path, path.read_text(), stat.S_IMODE(path.stat().st_mode)))
        ran.set()

    monkeypatch.setattr(server.uvicorn, "Server", Server)
    monkeypatch.setattr(server.uvicorn, "Config", lambda app, **_: type("Config", (), {"app": app}))
    monkeypatch.setattr(server.webbrowser, "open", open_browser)
    monkeypatch.setattr(server.ui, "run_with", lambda *a, **k: None)
    server.serve(StudioSession(), tell=told.append)
    ((address, path, text, mode),) = opened
    token = told[0].partition("token=")[2]
    assert len(token) >= 32
    assert token not in address
    assert told[0] in text
    assert mode == 0o600
    assert path.parent == (tmp_path / "there" if home == "there" else tmp_path)
    assert not path.exists()
