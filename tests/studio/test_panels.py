"""The page with its panels, simulated without a browser."""

import asyncio

import pytest

pytest.importorskip("nicegui", reason="NiceGUI is not installed (cerflow[studio])")

from nicegui import ui
from nicegui.testing import user_simulation

from cerflow.studio.panels.data import DataPanel
from cerflow.studio.session import StudioSession


def test_events_may_be_read_without_times(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("type,t\nA,1700000000000\nB,1700000001000\n")
    session = StudioSession()
    session.load(path)
    assert (session.events.time, session.events.schema.counts_time) == ("t", True)

    async def choose():
        async with user_simulation() as user:

            @ui.page("/")
            def page() -> None:
                panel = DataPanel(session, lambda: panel.refresh())

            await user.open("/")
            (box,) = user.find(kind=ui.select, content="Time").elements
            for column in ("", "t"):
                box.value = column
                await asyncio.sleep(0.5)
                yield session.events.time, session.events.schema.counts_time

    async def chosen():
        return [found async for found in choose()]

    assert asyncio.run(chosen()) == [(None, False), ("t", True)]
