"""What mkdocs changes in a page while it builds the site."""

import re

_EMPTY = re.compile(r"<th((?: style=\"[^\"]*\")?)>\s*</th>")
_PICTURES = re.compile(r"<p>((?:<img [^>]*>\s*)+)</p>")
_PICTURE = re.compile(r"<img [^>]*\balt=\"([^\"]*)\"[^>]*>")


def on_page_content(html: str, **_: object) -> str:
    """The corner of a table is no header; what a picture shows stands below it, too."""
    html = _EMPTY.sub(r"<td\1></td>", html)
    return _PICTURES.sub(lambda found: _PICTURE.sub(_captioned, found[1]), html)


def _captioned(picture: re.Match[str]) -> str:
    words = picture[1][:1].upper() + picture[1][1:]
    # readers of screens have heard the words already
    caption = f'<figcaption aria-hidden="true">{words}</figcaption>'
    return f"<figure>{picture[0]}{caption}</figure>"
