"""What several files of this folder share."""

import pytest


@pytest.fixture
def spied(monkeypatch):
    """Remember the calls of functions: names, arguments and answers."""

    def spy(owner, *names):
        calls = []

        def noting(name, sound):
            def noted(*arguments, **options):
                answer = sound(*arguments, **options)
                calls.append((name, arguments, answer))
                return answer

            return noted

        for name in names:
            monkeypatch.setattr(owner, name, noting(name, getattr(owner, name)))
        return calls

    return spy
