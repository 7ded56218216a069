"""The steps that the command line takes unless it is handed others."""

import stat

from privspan.cli._steps import Steps


def test_a_spare_folder_can_be_read_by_this_user_only():
    folder = Steps().spare_folder()
    try:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        folder.rmdir()
