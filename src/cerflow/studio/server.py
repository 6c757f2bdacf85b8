"""The server of the studio: it answers only this machine, and only requests with the token of its address.

It also has the page of the manual about the query language, which comes with the studio.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import threading
import webbrowser
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory, mkdtemp
from types import MappingProxyType

import markdown2
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse
from nicegui import app, ui
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cerflow.base import limits
from cerflow.studio.page import StudioPage
from cerflow.studio.panels.work import rows_of
from cerflow.studio.session import StudioSession

_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]+)?")
_MATCHES = "/matches"


class Guarded:
    """An application behind a token, for requests and websockets alike.

    The address of the page has the token as ``?token=…``. It becomes a cookie that the browser sends with what the page
    loads, never from pages of other origins. Everything else is refused (403). No page of others can show it in a
    frame. ``arrived`` is called whenever somebody comes with the token in the address.
    """

    def __init__(self, application: ASGIApp, token: str, port: int, arrived: Callable[[], None] = lambda: None) -> None:
        self._application = application
        self._token = token
        self._arrived = arrived
        self._cookie = f"cerflow_studio_{port}"
        self._origins = {f"http://{host}:{port}" for host in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        asking = HTTPConnection(scope)
        given, kept = asking.query_params.get("token", ""), asking.cookies.get(self._cookie, "")
        if not self._is_own(asking.headers) or not (self._is_token(given) or self._is_token(kept)):
            await _refuse(scope, receive, send)
            return
        if self._is_token(given):
            self._arrived()

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # The page has the matches in a frame, and stands in no frame itself.
                ancestors = "'self'" if scope["path"] == _MATCHES else "'none'"
                headers.append("content-security-policy", f"frame-ancestors {ancestors}")
                if self._is_token(given):
                    headers.append("set-cookie", f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/")
            await send(message)

        await self._application(scope, receive, with_headers)

    def _is_own(self, headers: Headers) -> bool:
        """Whether a request is for this machine by name, and comes from no page of another origin."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        return len(hosts) == 1 and bool(_HOST.fullmatch(hosts[0])) and self._origins.issuperset(origins)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())


class Tabs:
    """The sessions of the tabs of browsers, by the names that the browsers give to their tabs.

    The first tab has the session that the command made; others begin with what that began with.
    """

    def __init__(self, first: StudioSession) -> None:
        self._pattern, self._first = first.twin(), [first]
        #: Those looked at last stand last.
        self._known: OrderedDict[str, StudioSession] = OrderedDict()

    def of(self, tab: str, asked: Mapping[str, str] = MappingProxyType({})) -> StudioSession:
        """The session of a tab; a session that has rested while many others were looked at is forgotten.

        A new one begins with the query that is ``asked`` for, as a link does.
        """
        if tab not in self._known:
            new = self._known[tab] = self._first.pop() if self._first else self._pattern.twin()
            if "query" in asked:
                new.follow(asked)
        self._known.move_to_end(tab)
        if len(self._known) > limits.STUDIO_TABS:
            self._known.popitem(last=False)
        return self._known[tab]


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    text = "This page needs the token that 'cerflow studio' prints: open the whole address.\n"
    await PlainTextResponse(text, 403)(scope, receive, send)


def serve(session: StudioSession, *, port: int = 0, show: bool = True, tell: Callable[[str], object] = print) -> None:
    """Serve the studio on 127.0.0.1 until the process is interrupted; ``tell`` gets its address, with the token.

    Each tab of the browser has a page of its own, and ``/matches`` is the page that stands inside it. Port 0 is any
    that is free. Raises `OSError` for a port that is taken.
    """
    tabs = Tabs(session)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    # Before the address is told, so that who opens it at once waits and is not refused.
    listening.listen()
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    # At the end, before the process waits for threads.
    app.on_shutdown(session.closing.set)

    @application.get(_MATCHES, response_class=HTMLResponse)
    def matches_page(tab: str) -> str:
        return tabs.of(tab).matches_page

    application.get("/rows")(rows_of)
    application.get("/manual", response_class=HTMLResponse)(manual)
    folder = TemporaryDirectory(prefix="cerflow-studio-")
    application.post("/upload")(partial(_keep, Path(folder.name)))

    async def page() -> None:
        # The browser names its tab when it connects.
        client = ui.context.client
        await client.connected()
        StudioPage(tabs.of(str(client.tab_id), {} if client.request is None else client.request.query_params))

    script = Path(__file__).with_name("studio.js").read_text("utf-8")
    ui.add_head_html(f"<script>{script}</script>", shared=True)
    ui.run_with(application, root=page, title="cerflow studio", dark=None, language="en-US", show_welcome_message=False)
    address = f"http://127.0.0.1:{port}/?token={token}"
    signpost = _signpost(address) if show else None
    guarded = Guarded(application, token, port, lambda: _remove(signpost))
    server = uvicorn.Server(uvicorn.Config(guarded, log_level="warning", ws="auto"))
    try:
        tell(address)
        if signpost is not None:
            threading.Timer(1.0, webbrowser.open, [signpost.as_uri()]).start()
        server.run(sockets=[listening])
    finally:
        _remove(signpost)
        folder.cleanup()


async def _keep(folder: Path, name: str, request: Request) -> str:
    """Keep a file that the browser sends until the studio ends: its path."""
    path = Path(mkdtemp(dir=folder)) / (Path(name).name or "events.csv")
    with path.open("wb") as file:
        async for part in request.stream():
            file.write(part)
    return str(path)


def _signpost(address: str) -> Path:
    """A file that sends a browser to an address, and that only the user can read.

    All users of the machine see the command line of the browser, so the token does not stand there.
    """
    # Browsers in a container (snap, flatpak) do not see the folder for temporary files.
    home = os.path.expanduser("~")
    folder = home if os.access(home, os.W_OK) else None
    with NamedTemporaryFile("w", prefix="cerflow-studio-", suffix=".html", dir=folder, delete=False) as file:
        file.write(f'<meta charset="utf-8"><script>location.replace({json.dumps(address)})</script>\n')
    return Path(file.name)


def _remove(file: Path | None) -> None:
    if file is not None:
        file.unlink(missing_ok=True)


def manual() -> str:
    """The page as HTML: of an installed package, or of the sources that it is run from."""
    here = Path(__file__)
    installed = here.with_name("language.md")
    text = (installed if installed.is_file() else here.parents[3] / "docs" / "language.md").read_text("utf-8")
    # The other pages of the manual are not here.
    text = re.sub(r"\[([^]]*)\]\((?!#|https:)[^)]*\)", r"\1", text)
    extras = ["tables", "fenced-code-blocks", "header-ids"]
    # A head of a table that says nothing is a cell like others.
    found = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", str(markdown2.markdown(text, extras=extras)))
    return here.with_name("manual.html").read_text("utf-8").replace("%s", found)
