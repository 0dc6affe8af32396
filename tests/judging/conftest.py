"""Tests of judging projects need a database."""

import pytest

pytest.importorskip("sqlalchemy", reason="without SQLAlchemy there is no project to test")
