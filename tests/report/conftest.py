"""Valuations that are made once for all tests of the report, and a browser to open pages in."""

from __future__ import annotations

import shutil

import pytest
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls


@pytest.fixture(scope="session")
def iris():
    return ls.datasets.load("iris")


@pytest.fixture(scope="session")
def exact(iris):
    return ls.value(iris.X, iris.y, iris.X_test, iris.y_test, model="knn")


@pytest.fixture(scope="session")
def sampled(iris):
    arguments = iris.X, iris.y, iris.X_test, iris.y_test
    support = ls.supports.Nearest(10)
    return ls.value(*arguments, model=DecisionTreeClassifier(), support=support, method="sample", budget=800)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium was found")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def opening(browser):
    """Open a page from its file; at the end nothing may have gone wrong in it, or left for a network."""
    pages, wrong = [], []

    def open_page(path, context=None, **settings):
        page = (context or browser).new_page(**settings)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on("request", lambda request: wrong.append(request.url) if _leaves(request.url) else None)
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert wrong == []


def _leaves(address):
    return not address.startswith(("file:", "data:", "blob:"))
