"""The site's pages that are not under docs/, and links that lead out of it.

README, CONTRIBUTING and the changelog are pages too, and so are those that `deploy.site.reference`
wrote into build/reference; other files are linked in the repository.
"""

import re
from pathlib import Path
from posixpath import join, normpath, relpath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT: Final = Path(__file__).parents[2]
_PAGES: Final = {
    "README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
}  # fmt: skip
_LINK: Final = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)]*)?(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the repository's root, and those made of the code."""
    for file, page in _PAGES.items():
        files.append(File.generated(config, page, content=(_ROOT / file).read_text()))
    style = (_ROOT / "deploy/site/site.css").read_text()
    files.append(File.generated(config, "site.css", content=style))
    for made in sorted((_ROOT / "build/reference").glob("*.*")):
        files.append(File.generated(config, f"reference/{made.name}", content=made.read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Rewrite links between the site and the rest of the repository."""
    here = page.file.src_uri
    repository = config.extra["repository"]
    places = {site: file for file, site in _PAGES.items()}
    folder = str(Path(places.get(here, f"docs/{here}")).parent)

    def rewritten(link: re.Match[str]) -> str:
        before, path, anchor, after = link.group(1), link.group(2), link.group(3) or "", link[4]
        file = normpath(join(folder, path))
        inside = _PAGES.get(file) or (
            file.removeprefix("docs/") if file.startswith("docs/") else ""
        )
        if inside:
            return f"{before}{relpath(inside, str(Path(here).parent))}{anchor}{after}"
        return f"{before}{repository}/blob/main/{file}{anchor}{after}"

    return _LINK.sub(rewritten, markdown)
