"""Installed distributions as wheels again, so that commands of the manual install them without a network."""

import zipfile
from importlib.metadata import distribution, requires

from packaging.requirements import Requirement


def closure(names):
    """The names of distributions and of all that they need here."""
    found = {}
    todo = [Requirement(name) for name in names]
    while todo:
        need = todo.pop()
        if need.name in found and need.extras <= found[need.name]:
            continue
        found[need.name] = found.get(need.name, set()) | need.extras
        for text in requires(need.name) or []:
            further = Requirement(text)
            extras = [{"extra": extra} for extra in (need.extras or [""])]
            if further.marker is None or any(map(further.marker.evaluate, extras)):
                todo.append(further)
    return set(found)


def make_wheels(folder, names):
    """Write a wheel for each of these distributions into a folder, from the files that were installed."""
    folder.mkdir(exist_ok=True)
    for name in names:
        found = distribution(name)
        # The last tag is that of the newest Python.
        tag = [line.split()[1] for line in found.read_text("WHEEL").splitlines() if line.startswith("Tag:")][-1]
        path = folder / f"{found.metadata['Name'].replace('-', '_')}-{found.version}-{tag}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for file in found.files:
                # Scripts lie outside, and pip makes them again.
                if ".." not in file.parts and file.suffix != ".pyc" and file.name not in ("INSTALLER", "REQUESTED"):
                    archive.write(file.locate(), str(file))
    return folder
