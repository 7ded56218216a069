"""The page that shows the way through the code names what is there, and the house keeps its size."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "privspan"
PAGE = (ROOT / "docs" / "explanation" / "code-layout.md").read_text("utf-8")


def test_every_room_is_on_the_page():
    table = PAGE.split("## The rooms")[1].split("## Five walks")[0]
    named = set(
        re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `")))
    )
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}
    assert named == rooms | modules


def test_every_file_that_the_page_names_is_there():
    files = set(re.findall(r"`((?:\w+/)+\w+\.py|\w+\.py)`", PAGE))
    assert len(files) > 20
    assert [name for name in files if not (PACKAGE / name).exists()] == []


def test_few_rooms_and_fewer_modules_outside_of_them():
    assert len(list(PACKAGE.glob("*.py"))) <= 6
    assert len([path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"]) <= 20
