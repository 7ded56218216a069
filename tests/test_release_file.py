"""A release in a file: everything comes back, older files are read, damage is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

import privspan as ps
from privspan.release_file import load_release, save_release

X = np.random.default_rng(0).normal(size=(400, 2)) @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])


@pytest.fixture(scope="module")
def model() -> ps.PrivatePCA:
    with pytest.warns(ps.NotPrivateWarning):
        return ps.PrivatePCA(2, epsilon=1.0, delta=1e-6, random_state=0).fit(X)


def test_a_release_comes_back_as_it_was(model, tmp_path: Path) -> None:
    path = save_release(tmp_path / "pca", model.release_, plan=model.plan_, source="table X")
    saved = load_release(path)
    assert path.name == "pca.npz"
    assert (saved.subspace, saved.plan, saved.source) == (model.subspace_, model.plan_, "table X")
    assert saved.release.subspace is saved.subspace
    assert saved.release.cost == model.release_.cost
    assert saved.release.private is False
    assert saved.release.method == model.release_.method
    assert saved.release.extras == model.release_.extras  # arrays as arrays
    assert saved.release.to_dict() == model.release_.to_dict()


def test_either_reader_reads_either_file(model, tmp_path: Path) -> None:
    save_release(tmp_path / "release.npz", model.release_)
    assert ps.Subspace.load(tmp_path / "release.npz") == model.subspace_
    model.subspace_.save(tmp_path / "subspace.npz")
    saved = load_release(tmp_path / "subspace.npz")
    assert (saved.subspace, saved.release, saved.plan, saved.source) == (model.subspace_, None, None, None)


def rewritten(path: Path, change) -> Path:
    with np.load(path) as archive:
        arrays = dict(archive)
    description = json.loads(arrays["description"].tobytes())
    change(description)
    np.savez(path, **{**arrays, "description": np.frombuffer(json.dumps(description).encode(), np.uint8)})
    return path


def test_a_file_of_the_first_version_is_read(model, tmp_path: Path) -> None:
    path = rewritten(model.subspace_.save(tmp_path / "old"), lambda description: description.pop("made"))
    assert load_release(path).subspace == model.subspace_
    assert ps.Subspace.load(path) == model.subspace_


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made["release"].pop("cost"),
        lambda made: made["release"]["cost"].update(epsilon=-1),
        lambda made: made["plan"].update(unknown=1),
        lambda made: made.pop("source"),
        lambda made: made.update(release=[]),
    ],
)
def test_damage_is_refused_with_the_name_of_the_file(change, model, tmp_path: Path) -> None:
    path = save_release(tmp_path / "pca.npz", model.release_, plan=model.plan_)
    rewritten(path, lambda description: change(description["made"]))
    with pytest.raises(ValueError, match=r"pca\.npz.*damaged"):
        load_release(path)


def test_an_abstention_has_nothing_to_save(model, tmp_path: Path) -> None:
    abstained = ps.Release(None, model.release_.cost, "test")
    with pytest.raises(ValueError, match="abstained"):
        save_release(tmp_path / "nothing", abstained)
    assert list(tmp_path.iterdir()) == []
