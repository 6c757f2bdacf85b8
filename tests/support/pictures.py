"""Checks of pictures."""

import re
from xml.etree import ElementTree

from cerflow.look.pictures.svg import text_width

SVG = "{http://www.w3.org/2000/svg}"


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def extent(element):
    """The points that an element covers; of a curve some on it, and of a text its corners, by its letters."""
    of = {name: float(value) for name, value in element.attrib.items() if re.fullmatch(r"-?[\d.]+", value)}
    match element.tag.removeprefix(SVG):
        case "rect":
            return [(of["x"], of["y"]), (of["x"] + of["width"], of["y"] + of["height"])]
        case "circle":
            return [(of["cx"] + a, of["cy"] + b) for a in (-of["r"], of["r"]) for b in (-of["r"], of["r"])]
        case "polygon":
            return [*zip(*[iter(numbers(element.get("points")))] * 2)]
        case "path":
            found = [*zip(*[iter(numbers(element.get("d")))] * 2)]
            return found[::3] if "C" in element.get("d") else found
        case "text":
            width = text_width("".join(element.itertext()))
            left = of["x"] - {"start": 0, "middle": width / 2, "end": width}[element.get("text-anchor", "start")]
            return [(left, of["y"] - 10), (left + width, of["y"] + 3)]
    return []


def read_svg(text):
    """The root of a picture that stands alone, with everything inside its view box."""
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    left, top, width, height = numbers(root.get("viewBox"))
    assert (root.get("width"), root.get("height")) == (f"{width:g}", f"{height:g}")
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in {
            "svg", "style", "g", "title", "desc", "rect", "circle", "path", "polygon", "text", "tspan",
        }  # fmt: skip
        assert set(element.attrib) <= {
            "viewBox", "width", "height", "class", "role", "aria-labelledby", "aria-describedby", "id",
            "x", "y", "cx", "cy", "r", "rx", "d", "points", "text-anchor",
        }  # fmt: skip
        for x, y in extent(element):
            assert left <= x <= left + width, ElementTree.tostring(element)
            assert top <= y <= top + height, ElementTree.tostring(element)
    # Its name, and what it shows in words.
    for attribute, part in zip(("aria-labelledby", "aria-describedby"), root):
        assert (part.tag, part.get("id")) in {(f"{SVG}{t}", root.get(attribute)) for t in ("title", "desc")}
        assert part.text
    style = root.find(f"{SVG}style").text
    assert not re.search(r"url|import|//|<", style)
    return root


def groups(root, kind):
    """The groups with a class."""
    return [group for group in root.iter(f"{SVG}g") if kind in group.get("class").split()]


def titles(root, kind):
    """What the groups with a class say when the pointer rests on them."""
    return [group.find(f"{SVG}title").text for group in groups(root, kind)]


def texts(element):
    """The lines of text below an element."""
    return ["".join(line.itertext()) for line in element.iter(f"{SVG}text")]
