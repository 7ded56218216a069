"""A release in a file: everything comes back, damage is refused."""

import json
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import privspan as ps
from privspan._lib.record import Record
from privspan.ledger.release_file import KNOWN_METHODS, load_release, save_release
from privspan.pca import PCASettings, learn_pca
from privspan.privacy.call import Call
from privspan.sums.variance import explained_variance

X = np.random.default_rng(0).normal(size=(400, 2)) @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
RECORD = Record("table X", by="Office", purpose="year book", left_out=(("name", "text"),), ledger=("spent",))


@pytest.fixture(scope="module")
def model() -> ps.PrivatePCA:
    with pytest.warns(ps.NotPrivateWarning):
        return ps.PrivatePCA(2, epsilon=1.0, delta=1e-6, random_state=0).fit(X)


def test_a_release_comes_back_as_it_was(model, tmp_path: Path) -> None:
    path = save_release(tmp_path / "pca", model.release_, plan=model.plan_, record=RECORD)
    saved = load_release(path)
    assert path.name == "pca.npz"
    assert (saved.subspace, saved.plan, saved.record) == (model.subspace_, model.plan_, RECORD)
    assert saved.release.subspace is saved.subspace
    assert saved.release.cost == model.release_.cost
    assert saved.release.private is False
    assert saved.release.method == model.release_.method
    assert saved.release.extras == model.release_.extras  # arrays as arrays
    assert saved.release.to_dict() == model.release_.to_dict()


def test_a_release_saves_itself_and_comes_back_equal(model, tmp_path: Path) -> None:
    path = model.release_.save(tmp_path / "pca", plan=model.plan_, record=RECORD)
    again = ps.Release.load(path)
    assert again == model.release_
    assert load_release(path).plan == model.plan_
    assert load_release(path).record == RECORD
    before = path.read_bytes()
    with pytest.raises(FileExistsError):  # as on the command line
        again.save(path)
    assert path.read_bytes() == before
    again.save(path, overwrite=True)
    assert load_release(path).plan is None


def test_a_subspace_alone_is_no_release(model, tmp_path: Path) -> None:
    path = model.subspace_.save(tmp_path / "subspace")
    with pytest.raises(ValueError, match=r"Subspace\.load"):
        ps.Release.load(path)
    abstained = ps.Release(None, model.release_.cost, model.release_.method)
    with pytest.raises(ValueError, match="nothing to save"):
        abstained.save(tmp_path / "nothing")


def test_either_reader_reads_either_file(model, tmp_path: Path) -> None:
    save_release(tmp_path / "release.npz", model.release_)
    assert ps.Subspace.load(tmp_path / "release.npz") == model.subspace_
    model.subspace_.save(tmp_path / "subspace.npz")
    saved = load_release(tmp_path / "subspace.npz")
    assert (saved.subspace, saved.release, saved.plan, saved.record) == (model.subspace_, None, None, None)


def rewritten(path: Path, change) -> Path:
    with np.load(path) as archive:
        arrays = dict(archive)
    description = json.loads(arrays["description"].tobytes())
    change(description)
    np.savez(path, **{**arrays, "description": np.frombuffer(json.dumps(description).encode(), np.uint8)})
    return path


@pytest.mark.parametrize(
    "options", [{"scale": True}, {"bounds": {"a": (-9, 9)}}, {"robust": True}, {"center": False}]
)
def test_what_a_pca_adds_comes_back(options, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(4000, 3)) * [1.0, 10.0, 0.0]
    settings = PCASettings(1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.NoSpreadWarning)
        with Call("private_pca", 1.0, 1e-6, 0) as call:
            release, plan = learn_pca(settings, call, rows, names=["a", "b", "c"])
    saved = load_release(save_release(tmp_path / "pca", release, plan=plan))
    assert (saved.plan, saved.release.extras) == (plan, release.extras)
    assert saved.release.to_dict() == release.to_dict()
    assert "scale" not in options or "c" in saved.release.parameters["not_seen"]


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made["release"].pop("cost"),
        lambda made: made["release"]["cost"].update(epsilon=-1),
        lambda made: made["plan"].update(unknown=1),
        lambda made: made.pop("record"),
        lambda made: made.update(release=[]),
        lambda made: made["release"].update(private="false"),
        lambda made: made["release"].update(private=1),
        lambda made: made["release"].update(method="private PCA (x); rm -rf ~"),
        lambda made: made["release"].update(method=["stable"]),
        lambda made: made["release"].update(more=1),
        lambda made: made["release"]["cost"].update(delta=True),
        lambda made: made["release"]["cost"].update(delta=2),
        lambda made: made["release"]["cost"].update(neighbours="none"),
        lambda made: made["release"]["cost"]["parts"][0].update(name=None),
        lambda made: made["release"]["parameters"].update(n="400"),
        lambda made: made["release"]["parameters"].update(decimals="2; rm -rf ~"),
        lambda made: made["release"]["parameters"].update(centring="by hand"),
        lambda made: made["release"]["extras"].update(mean=[0.0]),
        lambda made: made["release"]["extras"].update(explained_variance="much"),
        lambda made: made["release"]["extras"].update(explained_variance_ratio=[0.5]),
        lambda made: made["release"]["extras"].update(n_components=1),
        lambda made: made["release"]["extras"].update(captured_variance="most"),
        lambda made: made["release"]["extras"].update(captured_variance_std=-1.0),
        lambda made: made["release"]["extras"].update(stands_out=1.5),
        lambda made: made["release"]["extras"].update(mean_std=[0.1]),
        lambda made: made["release"]["extras"].update(scale=[1.0, 0.0, 1.0]),
        lambda made: made["release"]["extras"].update(rows_shortened="few"),
        lambda made: made["release"]["parameters"].update(without_units=[1.5]),
        lambda made: made["release"]["parameters"].update(course=None),
        lambda made: made["release"]["parameters"].update(declared={"rng": {"a": 0}}),
        lambda made: made["release"]["parameters"].update(declared={"bounds": {"a": [0, "1; rm -rf ~"]}}),
        lambda made: made["plan"].update(center=1),
        lambda made: made["plan"].update(error="0.1"),
        lambda made: made["plan"].update(method="magic"),
        lambda made: made["plan"].update(assumed=0),
        lambda made: made["plan"].update(alternatives={}),
        lambda made: made.update(record=7),
        lambda made: made["record"].update(by=7),
        lambda made: made["record"].pop("date"),
        lambda made: made["record"].update(left_out=[["name"]]),
    ],
)
def test_damage_is_refused_with_the_name_of_the_file(change, model, tmp_path: Path) -> None:
    path = save_release(tmp_path / "pca.npz", model.release_, plan=model.plan_, record=RECORD)
    rewritten(path, lambda description: change(description["made"]))
    with pytest.raises(ValueError, match=r"pca\.npz.*damaged"):
        load_release(path)


def test_an_abstention_has_nothing_to_save(model, tmp_path: Path) -> None:
    abstained = ps.Release(None, model.release_.cost, "test")
    with pytest.raises(ValueError, match="abstained"):
        save_release(tmp_path / "nothing", abstained)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda description: description.update(affine=1),
        lambda description: description.update(version=True),
        lambda description: description.update(names="abc"),
        lambda description: description.update(names=[1, 2, 3]),
        lambda description: description.update(more=None),
        lambda description: description["exact"].update(homogeneous=0),
        lambda description: description["exact"].update(pivots=[0.0, 1.0]),
        lambda description: description["exact"].update(denominators=["1", "1"]),
        lambda description: description["exact"].update(more=1),
    ],
)
def test_a_description_of_the_wrong_kind_is_refused(change, tmp_path: Path) -> None:
    path = an_exact_subspace().save(tmp_path / "exact.npz")
    rewritten(path, change)
    for read in (load_release, ps.Subspace.load):
        with pytest.raises(ValueError, match=r"exact\.npz"):
            read(path)


def an_exact_subspace() -> ps.Subspace:
    return ps.Subspace.from_exact(ps.ExactForm.from_rows([[1, 2, 3], [1, 0, 1]]))


def test_a_basis_that_contradicts_the_exact_form_is_refused(tmp_path: Path) -> None:
    other = ps.Subspace.from_exact(ps.ExactForm.from_rows([[1, 2, 3], [1, 0, 2]]))
    path = ps.Subspace(other.basis, exact=an_exact_subspace().exact).save(tmp_path / "two")
    affine = ps.ExactForm.from_rows([[1, 0, 5], [0, 1, 1]], homogeneous=True)
    shifted = ps.Subspace.from_exact(affine)
    moved = ps.Subspace(shifted.basis, exact=affine, offset=shifted.offset + 1.0).save(tmp_path / "moved")
    for file in (path, moved):
        for read in (load_release, ps.Subspace.load):
            with pytest.raises(ValueError, match="its basis is not that of its exact form"):
                read(file)
    assert ps.Subspace.load(shifted.save(tmp_path / "sound")) == shifted


def test_what_is_named_twice_is_refused(model, tmp_path: Path) -> None:
    path = save_release(tmp_path / "pca.npz", model.release_)
    with np.load(path) as archive:
        arrays = dict(archive)
    text = arrays["description"].tobytes().replace(b'"private": false', b'"private": false, "private": true')
    assert text != arrays["description"].tobytes()
    np.savez(path, **{**arrays, "description": np.frombuffer(text, np.uint8)})
    with pytest.raises(ValueError, match="names a field twice"):
        load_release(path)
    model.subspace_.save(path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("basis.npy", archive.read("basis.npy"))
    with pytest.raises(ValueError, match="an array twice"):
        load_release(path)


def test_every_method_can_be_saved_and_read_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 2)) @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]) + 1e-4 * rng.normal(size=(900, 3))
    budget = {"epsilon": 5.0, "delta": 1e-5, "rng": 0}
    releases = [getattr(ps.baselines, name)(rows, 2, **budget) for name in ps.baselines.__all__]
    releases += [ps.private_subspace(rows, 2, **budget, method=one) for one in ("adaptive", "stable", "approximate")]
    releases.append(ps.approximate_subspace(rows, 1, **budget, aggregate="histogram"))
    releases += [ps.exact_subspace(X.round().astype(int), 2, **budget, method=one) for one in ("gap-max", "votes")]
    releases.append(explained_variance(rows, ps.Subspace(np.eye(3)[:, :2]), **budget))
    for release in releases:
        assert release.method in KNOWN_METHODS
        if not release.abstained:
            saved = load_release(save_release(tmp_path / "one.npz", release))
            assert saved.release.to_dict() == release.to_dict()
    assert sum(not release.abstained for release in releases) >= 12


def test_only_known_methods_are_saved(model, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a method of this package"):
        save_release(tmp_path / "own", ps.Release(model.subspace_, model.release_.cost, "my own"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "value"), [("private", "false"), ("private", 1), ("method", None)])
def test_a_release_has_a_method_and_a_plain_answer_to_whether_it_is_private(model, name, value) -> None:
    with pytest.raises(TypeError, match=f"`{name}` must be"):
        ps.Release(model.subspace_, model.release_.cost, **{"method": "stable", name: value})


def test_the_report_pastes_nothing_from_outside_into_code(model) -> None:
    def page(method: str, **parameters: object) -> str:
        return ps.report.report_html(ps.Release(model.subspace_, model.release_.cost, method, parameters))

    assert "How to reproduce it" in page("stable")
    assert "How to reproduce it" not in page('stable") or print("owned')
    said = page("exact/votes", decimals="2; rm -rf ~", affine="yes; rm -rf /")
    _, _, code = said.partition("How to reproduce it")
    assert "rm -rf" not in code.partition("Every number")[0]


def test_an_older_file_stays_unless_it_may_be_replaced(model, tmp_path: Path) -> None:
    path = tmp_path / "pca.npz"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        save_release(path, model.release_, overwrite=False)
    with pytest.raises(FileExistsError):
        ps.report.write_report(path, model.release_, overwrite=False)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["pca.npz"]
    save_release(path, model.release_)
    assert load_release(path).subspace == model.subspace_


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_is_replaced_and_not_followed(model, tmp_path: Path) -> None:
    table, link = tmp_path / "people.csv", tmp_path / "pca.npz"
    table.write_text("a,b\n")
    link.symlink_to(table)
    model.subspace_.save(link)
    assert table.read_text() == "a,b\n"
    assert not link.is_symlink()
