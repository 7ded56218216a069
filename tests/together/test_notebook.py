"""The tutorial as a notebook runs from top to bottom, and shows cards and pictures where a reader looks."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> nbformat.NotebookNode:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    from tutorial_notebook import notebook_of

    return notebook_of((ROOT / "docs" / "tutorial" / "first-private-pca.md").read_text("utf-8"))


# What the client leaves behind, and what its own libraries say to one another.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Proactor event loop:RuntimeWarning")
@pytest.mark.slow  # a kernel takes its time
def test_the_notebook_of_the_tutorial_runs(notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat.validate(notebook)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # a kernel draws into the notebook
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "stream" and output.name == "stderr"]
    shown = [output.data for output in outputs if output.output_type in ("display_data", "execute_result")]
    html = "".join(data.get("text/html", "") for data in shown)
    for name in ("Plan", "PrivatePCA"):
        assert f'<span class="name">{name}</span>' in html
    assert sum("image/png" in data for data in shown) == 1  # the figure, once
    assert (tmp_path / "activities.html").exists()
