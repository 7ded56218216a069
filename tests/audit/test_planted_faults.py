"""Every planted fault is caught by its audit, and the sound code passes the same audit."""

import re
from functools import cache
from pathlib import Path

import pytest
from planted_faults import FAULTS

TABLE = Path(__file__).parents[2] / "docs" / "explanation" / "planted-faults.md"


SLOW = {
    "certificate skipped",
    "certificate at margin zero",
    "noise from the achieved bound",
    "leverage without the right ridge",
}
CASES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in FAULTS]


@cache  # faults that one audit finds share what it says of the sound code
def passes_sound_code(audit):
    return not audit()


@pytest.mark.parametrize("name", CASES)
def test_the_audit_passes_the_sound_code_and_catches_the_fault(name, monkeypatch):
    fault = FAULTS[name]
    assert passes_sound_code(fault.caught), "the audit refutes the code without the fault"
    fault.plant(monkeypatch)
    assert fault.caught(), "the audit does not see the fault"


def test_the_table_of_the_documentation_lists_these_faults():
    table, _, _ = TABLE.read_text("utf-8").partition("## Second implementations")
    heading, *listed = re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)
    assert heading == "fault"
    assert listed == list(FAULTS)


def test_there_are_enough_of_them():
    assert len(FAULTS) >= 15
