"""The server of the studio: for this machine alone, and only for who has the token of its address."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlsplit

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from nicegui import app, ui
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guarded", "serve"]


class Guarded:
    """An application behind a token, for requests and websockets alike.

    The address of the page has the token as ``?token=…``. It becomes a cookie that the browser sends with what the page
    loads, never from pages of other origins. Everything else is refused (403).
    """

    def __init__(self, application: ASGIApp, token: str, port: int) -> None:
        self._application = application
        self._token = token
        self._cookie = f"cerflow_studio_{port}"
        self._origins = {f"http://{host}:{port}" for host in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        cookies = SimpleCookie(headers.get("cookie", ""))
        kept = cookies[self._cookie].value if self._cookie in cookies else ""
        host = urlsplit(f"http://{headers.get('host', '')}").hostname
        own = headers.get("origin") in (None, *self._origins) and host in ("127.0.0.1", "localhost")
        if not own or not (self._is_token(given) or self._is_token(kept)):
            await _refuse(scope, send)
            return

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and self._is_token(given):
                text = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                message = {**message, "headers": [*message.get("headers", []), (b"set-cookie", text.encode())]}
            await send(message)

        await self._application(scope, receive, with_cookie)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    text = b"This page needs the token that 'cerflow studio' prints: open the whole address.\n"
    await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": text})


def serve(
    page: Callable[[], None],
    matches_page: Callable[[], str],
    *,
    port: int = 0,
    show: bool = True,
    tell: Callable[[str], None] = print,
    ended: Callable[[], None],
) -> None:
    """Serve a page on 127.0.0.1 until the process is interrupted; ``tell`` gets its address, with the token.

    ``matches_page`` gives the text of the page that stands inside it, at ``/matches``. Port 0 is any that is free.
    ``ended`` is called at the end, before the process waits for threads.
    Raises `OSError` for a port that is taken.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    # Before the address is told, so that who opens it at once waits and is not refused.
    listening.listen()
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.on_shutdown(ended)
    application.get("/matches", response_class=HTMLResponse)(matches_page)
    ui.run_with(application, root=page, title="cerflow studio", dark=None, show_welcome_message=False)
    address = f"http://127.0.0.1:{port}/?token={token}"
    server = uvicorn.Server(uvicorn.Config(Guarded(application, token, port), log_level="warning", ws="auto"))
    tell(address)
    if show:
        threading.Timer(1.0, webbrowser.open, [address]).start()
    server.run(sockets=[listening])
