"""Run the dashboard's pages in Streamlit's own test harness."""

import html
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

_APP = Path(__file__).parents[2] / "dashboard" / "app.py"


def one_page(name: str) -> None:
    """Run a page; this source is what the harness executes."""
    from importlib import import_module

    from dashboard import source

    where = source.from_environment()
    import_module(f"dashboard.{name}_page").show(source.client(where), where, None)


def shown(app: AppTest) -> str:
    """Return the text of a page, tags removed."""
    assert not app.exception
    bodies = [element.proto.body for element in app.get("html")]
    return text_of(" ".join(bodies))


def text_of(markup: str) -> str:
    """Return HTML's text, tags removed."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def table_rows(app: AppTest, caption: str) -> list[str]:
    """Return the HTML of each row of a page's table; none if the page has no such table."""
    assert not app.exception
    bodies = [element.proto.body for element in app.get("html")]
    tables = [body for body in bodies if f"<caption>{caption}</caption>" in body]
    return re.findall("<tr.*?</tr>", tables[0].partition("<tbody>")[2]) if tables else []


def rollout(
    monkeypatch: pytest.MonkeyPatch, database: str, *, module: str = "rollout", **query: str
) -> AppTest:
    """Return a page of a rollout, run once."""
    monkeypatch.delenv("DRAFTGATE_COLLECTOR_URL", raising=False)
    monkeypatch.setenv("DRAFTGATE_DATABASE_URL", database)
    app = AppTest.from_function(one_page, default_timeout=200, args=(module,))
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def landing(monkeypatch: pytest.MonkeyPatch, **environment: str) -> AppTest:
    """Return the landing page, run once, with navigation and sidebar."""
    for name in ("DRAFTGATE_COLLECTOR_URL", "DRAFTGATE_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return AppTest.from_file(str(_APP), default_timeout=200).run()
