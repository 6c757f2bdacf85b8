"""Drivers of streams in processes of their own, which tests kill."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from support.spark import killed_stream

#: How long a driver may take for its next micro-batch, in seconds.
PATIENCE = 1200.0


class Driver:
    """A driver in a session of its own: the driver, its JVM and the workers."""

    def __init__(self, folder, query, sink):
        self.folder = folder
        command = [sys.executable, killed_stream.__file__, str(folder), query, sink]
        path = os.pathsep.join([str(Path(killed_stream.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        with (folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, "PYTHONPATH": path}
            )

    @property
    def done(self):
        return (self.folder / "done").exists()

    def wait_for_progress(self, count=1):
        """Wait for some more micro-batches, or the end."""
        before = self.batches()
        end = time.monotonic() + PATIENCE
        while not self.done and self.batches() < before + count:
            assert time.monotonic() < end, self.told()
            assert self.process.poll() is None, self.told()
            time.sleep(0.02)

    def wait_for_end(self):
        while not self.done:
            self.wait_for_progress()

    def told(self):
        return (self.folder / "log").read_text()[-2000:]

    def batches(self):
        commits = self.folder / "checkpoint" / "commits"
        return sum(path.name.isdigit() for path in commits.iterdir()) if commits.exists() else 0

    def kill_at(self, chosen):
        """End all as soon as a file appears whose name is chosen; gives the name, None if the driver ends before.

        Names are relative to the folder, without the parts that are random.
        """
        seen, machine, end = set(files_in(self.folder)), [], time.monotonic() + PATIENCE
        while not self.done and self.process.poll() is None:
            assert time.monotonic() < end, self.told()
            new = set(files_in(self.folder)) - seen
            found = next(filter(chosen, sorted(map(plain_name, new))), None)
            if found is not None:
                for number in [*machine, self.process.pid]:
                    os.kill(number, signal.SIGKILL)
                self.kill()
                return found
            seen |= new
            # The one that writes files. To look for it takes longer than writing some.
            machine = machine or list(self._processes(lambda command: b"/java" in command.split(b"\0")[0]))
            time.sleep(0.0005)
        assert self.done, self.told()
        return None

    def kill(self):
        """End all at once, as a loss of power would."""
        self._kill(lambda command: True)
        self.process.wait()

    def kill_workers(self):
        """End the processes of Python that Spark has started; gives how many there were."""
        return self._kill(lambda command: b"pyspark.daemon" in command)

    def _kill(self, chosen):
        """End the chosen processes of the driver's session."""
        killed = 0
        for number in self._processes(chosen):
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
                killed += 1
        return killed

    def _processes(self, chosen):
        """The numbers of the chosen processes of the driver's session; Spark gives some a group of their own."""
        for entry in Path("/proc").iterdir():
            with suppress(ValueError, OSError):
                number = int(entry.name)
                if os.getsid(number) == self.process.pid and chosen((entry / "cmdline").read_bytes()):
                    yield number


def files_in(folder):
    """The names of the files of a stream: its checkpoint, its output and its dead letters."""
    for name in ("checkpoint", "output", "letters"):
        for path, _, files in os.walk(folder / name):
            yield from (os.path.relpath(os.path.join(path, file), folder) for file in files)


def plain_name(name):
    """The name of a file without what differs whenever it is written."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}(_\d+)?|attempt_\w+|\.pid\d+", "*", name)
