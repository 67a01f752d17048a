"""HTML in which every piece of text is escaped."""

from collector.contract import Outcome, ScoredSpan
from dashboard import answer_markup, markup
from dashboard.divergence import divergence
from dashboard.markup import TableCell, TableColumn


def test_a_table_escapes_what_it_shows() -> None:
    """Titles and cells are text; a number carries its exact value."""
    shown = markup.table(
        "<caption>",
        (TableColumn("A & B", "note"), TableColumn("n", number=True)),
        [[TableCell("<script>alert(1)</script>"), markup.numeric("1.23×", 1.2345678)]],
    )
    assert shown == (
        '<div class="dg-frame" tabindex="0" role="region" aria-label="&lt;caption&gt;">'
        '<table class="dg-table dg-scroll">'
        "<caption>&lt;caption&gt;</caption><thead><tr>"
        '<th scope="col">A &amp; B<span class="dg-note">note</span></th>'
        '<th scope="col" class="dg-number">n</th></tr></thead><tbody><tr>'
        '<th scope="row" class="dg-wide" data-column="A &amp; B, note">'
        "&lt;script&gt;alert(1)&lt;/script&gt;</th>"
        '<td class="dg-number" data-column="n" title="1.2345678">1.23×</td>'
        "</tr></tbody></table></div>"
    )


def test_half_a_surrogate_pair_is_shown_as_a_question_mark() -> None:
    """Text that no encoding can carry does not break a page."""
    assert [markup.text("a\ud800b"), markup.label("\udfff")] == ["a?b", "?"]


def test_a_label_says_what_it_is_given() -> None:
    """Markdown's signs in a label are escaped, and line breaks become spaces."""
    assert markup.label("![x](http://h)\n*b*") == "\\!\\[x\\]\\(http\\://h\\) \\*b\\*"


def test_a_link_quotes_the_rollouts_name() -> None:
    """A stranger's name stays inside of the address and inside of the text."""
    assert markup.rollout_link('a&b="<i>') == (
        '<a class="dg-name" href="rollout?rollout=a%26b%3D%22%3Ci%3E">a&amp;b=&quot;&lt;i&gt;</a>'
    )


def test_answers_are_marked_where_they_part() -> None:
    """What follows the first difference is marked; an answer that ends there says so."""
    fork = '<span class="dg-fork" title="The answers part here">▶</span>'
    assert answer_markup.answers(divergence("a<b", "a<")) == (
        f'<pre class="dg-text">a&lt;{fork}<mark>b</mark></pre>',
        f'<pre class="dg-text">a&lt;{fork}<i>(ends here)</i></pre>',
    )


def test_tokens_that_differ_are_marked_and_shared_ones_are_not() -> None:
    """Behind the fork only the tokens that the other answer lacks stand out."""
    left, right = answer_markup.answers(divergence("pay <b> now", "pay it now"))
    assert "<mark>&lt;b&gt;</mark> now" in left
    assert "<mark>it</mark> now" in right


def test_judged_parts_are_marked_with_sign_and_number() -> None:
    """Support is said by a sign and a tooltip; overlapping or alien spans lose no text."""
    spans = [
        ScoredSpan(start=0, end=4, support=0.9),
        ScoredSpan(start=2, end=7, support=0.1),
        ScoredSpan(start=40, end=50),
    ]
    shown = answer_markup.supported("<ok> no end", spans)
    assert shown == (
        '<pre class="dg-text">'
        '<span class="dg-supported" title="support 0.90">✓\u202f&lt;ok&gt;</span>'
        '<span class="dg-unsupported" title="support 0.10">✕\u202f no</span> end</pre>'
    )


def test_a_document_may_run_and_fetch_nothing() -> None:
    """A report's own policy forbids scripts and requests."""
    page = markup.document("<t>", "p{}", [markup.note("<script>")])
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "<title>&lt;t&gt;</title>" in page


def test_equal_answers_are_not_marked() -> None:
    """There is no mark where nothing differs."""
    assert answer_markup.answers(divergence("x", "x")) == ('<pre class="dg-text">x</pre>',) * 2


def test_the_banner_has_icon_word_and_sentence() -> None:
    """The verdict is readable without its colour."""
    assert markup.banner(Outcome.FAIL, "Worse & slower.", "By 3.") == (
        '<section class="dg-banner dg-fail" role="status">'
        '<span class="dg-icon" aria-hidden="true">✕</span>'
        '<div><span class="dg-word">Fail</span><p>Worse &amp; slower.</p>'
        '<p class="dg-note">By 3.</p></div></section>'
    )


def test_the_current_row_of_a_table_is_marked() -> None:
    """Screen readers announce it; the other rows have no mark."""
    rows = [[TableCell("a")], [TableCell("b")]]
    cell = '<th scope="row" class="dg-wide" data-column="n">'
    assert (
        f'<tbody><tr>{cell}a</th></tr><tr aria-current="true">{cell}b</th></tr></tbody>'
        in markup.table("x", (TableColumn("n"),), rows, current=1)
    )
