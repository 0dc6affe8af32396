"""A served judging project, with Chromium to open its pages."""

import socket
import threading

import pytest
from browser import found_browser
from judging_pages import filled

from rankgauge.judging import Settings
from rankgauge.web import judging_app

_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")


@pytest.fixture(scope="module")
def chromium():
    playwright_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright_api.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=found_browser(), args=list(_FLAGS))
        yield browser
        browser.close()


class Site:
    """A served project, and judges who sign in with a browser."""

    def __init__(self, project, chromium, log=None, evaluations=None, runner=None):
        self.project, self.chromium, self.evaluations = project, chromium, evaluations
        uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed")
        listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app = judging_app(project, log=log, evaluations=evaluations, runner=runner)
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]})
        self.thread.start()
        self.contexts, self.foreign = [], []

    def sign_in(self, name="Ann", role="judge", **options):
        """Return a page of a judge, in a separate context that can access only the site."""
        secret = self.project.add_judge(name, role=role)[1]
        context = self.chromium.new_context(base_url=self.url, **options)
        self.contexts.append(context)

        def only_here(route):
            if route.request.url.startswith(self.url):
                route.continue_()
            else:
                self.foreign.append(route.request.url)
                route.abort()

        context.route("**/*", only_here)
        page = context.new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(f"/join/{secret}")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/")
        return page

    def close(self):
        for context in self.contexts:
            context.close()
        self.server.should_exit = True
        self.thread.join(20)
        self.project.close()


@pytest.fixture
def served(tmp_path, chromium):
    """Return a function that serves a project until the end of the test."""
    sites = []

    def serve(project=None, log=None, evaluations=None, runner=None, **settings):
        if project is None:
            settings = {"repeats": 0.0} | settings
            project = filled(tmp_path / "judging.db", 12, 6, Settings(**settings))
        sites.append(Site(project.__enter__(), chromium, log, evaluations, runner))
        return sites[-1]

    yield serve
    for site in sites:
        site.close()
