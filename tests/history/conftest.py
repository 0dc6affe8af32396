"""Tests of the history need a database."""

import pytest

pytest.importorskip("sqlalchemy", reason="without SQLAlchemy there is no history to test")
