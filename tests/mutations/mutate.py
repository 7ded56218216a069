"""Plant one small fault after the other into a copy of the package and see that a named test notices each of them.

`mutations.toml` holds the list: what is wrong then, the file under ``src/privspan``, the text that is replaced, what
it is replaced by, and the tests that must fail.  A mutation that no test notices is a fault that could land tomorrow.

    python tests/mutations/mutate.py [--workers 2] [--only stable/]
"""

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = Path("src") / "privspan"
PATIENCE = 300.0  # seconds for the tests of one mutation; they take a few
PASSED, FAILED = 0, 1  # what pytest returns; anything else is no verdict


@dataclass(frozen=True)
class Mutation:
    """One line of the list."""

    fault: str
    file: str  # under src/privspan
    old: str
    new: str
    tests: tuple[str, ...]  # node ids

    def mutated(self, text: str) -> str:
        """Return the text of the file with the fault; ``ValueError`` unless the old text stands in it once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: the text occurs {text.count(self.old)} times, not once: {self.old}")
        return text.replace(self.old, self.new)


def listed() -> list[Mutation]:
    """Return the list."""
    entries = tomllib.loads((HERE / "mutations.toml").read_text("utf-8"))["mutation"]
    return [Mutation(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def copied(folder: Path) -> Path:
    """Return a copy of the package in a folder, compiled."""
    shutil.copytree(ROOT / PACKAGE, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder / PACKAGE, quiet=1)
    return folder


def surroundings(copy: Path) -> dict[str, str]:
    """Return an environment in which Python takes the package from the copy, and writes nothing beside it."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def check_copy(copy: Path) -> None:
    """Refuse to judge a package that is not the copy."""
    ask = [sys.executable, "-c", "import privspan; print(privspan.__file__)"]
    found = subprocess.run(ask, cwd=ROOT, env=surroundings(copy), capture_output=True, text=True, check=True).stdout
    if not Path(found.strip()).is_relative_to(copy):
        raise SystemExit(f"Tests would be run on another package: {found.strip()}")


def tested(copy: Path, tests: list[str], *options: str) -> tuple[int, str]:
    """Run tests on a copy; return the code of pytest, -1 if it took too long, and what it said."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--no-header", *options, *tests]
    limit = PATIENCE * (len(tests) if "-n" in options else 1)
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=surroundings(copy), capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return -1, f"no end within {limit:.0f} s"
    return done.returncode, done.stdout + done.stderr


def verdict(mutation: Mutation, copy: Path) -> str:
    """Plant the fault, run its tests, take it out again; return nothing if they noticed, else what went wrong."""
    file = copy / PACKAGE / mutation.file
    sound = file.read_text("utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()  # Python would take it for the new text's if both are as long and as old
    file.write_text(mutation.mutated(sound), "utf-8")
    try:
        code, said = tested(copy, list(mutation.tests), "-x", "--tb=line")
    finally:
        file.write_text(sound, "utf-8")
    if code == FAILED:
        return ""
    return "SURVIVED" if code == PASSED else f"NO VERDICT (pytest returned {code})\n{said[-1500:]}"


def main() -> int:
    """Run the list and return the number of mutations that were not noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="part of a file's name or of a fault's")
    given = parser.parse_args()
    chosen = [one for one in listed() if given.only in one.file or given.only in one.fault]
    began, bad = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.workers):
            copies.put(copied(Path(folder) / str(number)))
        sound = copies.get()
        check_copy(sound)
        names = sorted({test for one in chosen for test in one.tests})
        code, said = tested(sound, names, "-n", str(given.workers), "--dist", "loadfile")
        if code != PASSED:
            print(said[-5000:])
            raise SystemExit("The named tests do not pass on the sound code, or one of them does not exist.")
        copies.put(sound)
        print(f"{len(names)} tests pass on the sound code ({time.monotonic() - began:.0f} s).", flush=True)

        def judged(mutation: Mutation) -> None:
            copy, start = copies.get(), time.monotonic()
            try:
                found = verdict(mutation, copy)
            finally:
                copies.put(copy)
            if found:
                bad.append(mutation)
            said = found or "noticed"
            print(f"{time.monotonic() - start:5.1f} s  {mutation.file}: {mutation.fault}: {said}", flush=True)

        with ThreadPoolExecutor(given.workers) as workers:
            list(workers.map(judged, chosen))
    print(f"{len(chosen)} mutations, {len(bad)} not noticed, {time.monotonic() - began:.0f} s.")
    for mutation in bad:
        print(f"  {mutation.file}: {mutation.fault}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
