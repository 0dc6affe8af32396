"""Web application: pages on which people judge documents and answers."""

from __future__ import annotations

from rankgauge.core.lazy import lazy_imports

with lazy_imports(globals()):
    from rankgauge.web.app import judging_app as judging_app
    from rankgauge.web.server import serve as serve
