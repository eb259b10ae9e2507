"""http://127.0.0.1:8941/: the front page, the handbook, people, news, and what has piled up over the years."""

from __future__ import annotations

from examples.intranet.pages import HTML, Answer, page, redirect

_FRONT = page(
    "Halden Pumps intranet",
    """<p>Good morning. The canteen serves lentil soup today, and the car park is closed until Friday.</p>
<ul>
<li><a href="/drafts/published/vision.html">Our vision for the next ten years</a>
 (<a href="/drafts/strategy.html">draft of the strategy</a>)
<li><a href="/payroll/june.html">Payroll, June</a>
<li><a href="/go/travel">Travelling for the company</a>, <a href="/go/minutes">board minutes</a>
<li><a href="/go/cleaning">Spring cleaning</a>, <a href="/go/broken">the old phone list</a>, <a href="/loop/a">the maze</a>,
 <a href="/go/floor/1">the lift</a>
<li><a href="/old-home.html">The old home page</a>, <a href="/legacy/">the intranet of 1998</a>
<li><a href="/archive/1998/q1/january/week2/memo.html">A memo</a> and
 <a href="/archive/1998/q1/january/week2/monday/memo.html">a memo of Monday</a>
<li><a href="/search?q=pump&amp;in=everything&amp;sort=newest&amp;explain=please-show-me-every-document-that-mentions-a-pump-
or-a-valve-or-a-seal-or-a-gasket-or-a-bearing-or-an-impeller-or-a-coupling-or-a-motor">A saved search</a>
<li><a href="/images/site-plan.png">Site plan</a>, <a href="/downloads/vpn-client.exe">VPN client</a>
<li><a href="ftp://127.0.0.1/pub/drawings/">Drawings</a>, <a href="mailto:reception@halden.example">reception</a>,
 <a href="javascript:history.back()">back</a>
<li><a href="http://guest:guest@127.0.0.1:8941/guestbook.html">Guest book</a>, <a href="http://[fe80::bad/">printer</a>
</ul>
<h2>Elsewhere</h2>
<ul>
<li><a href="http://www.partner.example/offers.html">Offers of a partner</a>, <a href="https://www.example.org/">a dictionary</a>
<li><a href="http://127.0.0.1:8942/">the products on the wrong machine</a>
<li><a href="http://127.0.0.9:8942/">the machine hall's controller</a>
<li><a href="http://127.0.0.2:8944/">time clock</a>, <a href="http://time-clock.invalid/">its predecessor</a>
</ul>""",
)

_HANDBOOK = page(
    "Employee handbook",
    """<p>Everything a new colleague asks in the first week, and some things nobody asks.</p>
<ol>
<li><a href="welcome.html">Welcome</a>
<li><a href="hours.html">Working hours</a>
<li><a href="expenses.html">Expenses</a>
<li><a href="security.html">Security</a>
<li><a href="security.html?print=1">Security, to print</a>
<li><a href="holidays.html">Holidays</a>
<li><a href="print/overview.html">All chapters on one sheet</a>
<li><a href="parental-leave.html">Parental leave</a>
</ol>""",
)

_SECURITY = page(
    "Security in the building",
    """<p>Wear your badge where it can be seen. Visitors sign in at reception and are never left alone in the machine hall.</p>
<p>Found a memory stick? Do not plug it in; take it to the help desk.</p>""",
)

_NEWS_PAGES = 3


def _news(number: int) -> Answer:
    stories = {
        1: """<p>The company is fifty years old: <a href="/news/anniversary.html">how it was celebrated</a>.</p>
<p><a href="/news/embargo.html">Not before Monday</a> · <a href="/news/press-clippings.html">press clippings</a> ·
<a rel="nofollow" href="/news/sponsor-offer.html">a word from our sponsor</a></p>""",
        2: "<p>The new test bench for submersible pumps went into service on a rainy Tuesday.</p>",
        3: "<p>The bowling team lost again, with honour. The trophy stays with accounting.</p>",
    }
    head = "" if number == _NEWS_PAGES else f'<link rel="next" href="/news/page-{number + 1}.html">'
    return page("News" if number == 1 else f"News, page {number}", stories[number], head=head)


HOME: dict[str, Answer] = {
    "/robots.txt": Answer("User-agent: *\nDisallow: /payroll/\n", headers=(("Content-Type", "text/plain"),)),
    "/": _FRONT,
    "/handbook/": _HANDBOOK,
    "/handbook/welcome.html": page(
        "Welcome",
        """<p>Your first day begins at nine at reception. Someone will meet you, probably with coffee.</p>
<p>Read about <a href="hours.html#core">core hours</a> next.</p>""",
    ),
    "/handbook/hours.html": page(
        "Working hours",
        """<p id="core">Core hours are from ten to three. Overtime is written down and taken as time off.</p>
<p><a href="arbeitszeit.html" hreflang="de">Deutsch</a> <a href="conges.html" hreflang="fr">Français</a></p>""",
    ),
    "/handbook/arbeitszeit.html": page(
        "Arbeitszeit und Überstunden",
        """<p>Überstunden werden aufgeschrieben und später als Freizeit genommen;
wer länger als zehn Stunden bleibt, muss vorher fragen.</p>
<p>Die Kernzeit heißt bei uns „die ruhigen Stunden“ –
zwischen zehn und fünfzehn Uhr ist jeder für die Kollegen erreichbar.</p>""",
        lang="de",
        charset="windows-1252",
    ),
    "/handbook/conges.html": page(
        "Congés et absences",
        """<p>Les congés payés sont demandés au moins deux semaines à l'avance.
Une journée de télétravail par semaine est acceptée.</p>
<p>En cas de maladie, prévenez votre équipe dès le matin ; le certificat médical est envoyé à l'accueil.</p>""",
        lang="fr",
        charset="iso-8859-1",
    ),
    "/handbook/expenses.html": page(
        "Expenses",
        """<p>Keep the receipts. Meals are paid up to the daily rate, trains always, taxis after ten in the evening.</p>
<p>Expenses without a receipt are paid once, with a sigh.</p>""",
    ),
    "/handbook/security.html": _SECURITY,
    "/handbook/security.html?print=1": _SECURITY,
    "/handbook/holidays.html": page(
        "Holidays", "<p>Thirty days a year. The works are closed between Christmas and New Year; the switchboard is not.</p>"
    ),
    "/handbook/parental-leave.html": page(
        "Parental leave", "<p>Tell us when you can, take the time you need, and send a photograph.</p>"
    ),
    "/handbook/print/overview.html": page(
        "All chapters on one sheet",
        '<p>Welcome, hours, expenses, security, holidays, and <a href="travel.html">travel</a>.</p>',
        head='<base href="/handbook/">',
    ),
    "/handbook/travel.html": page(
        "Business travel", "<p>Book the train first, the hotel second. Flights inside the country need a reason in writing.</p>"
    ),
    "/people/": page(
        "People",
        """<p><a href="anna-lindqvist.html">Anna Lindqvist</a>, <a href="marek-dvorak.html">Marek Dvořák</a>,
<a href="anna-lindqvist/private/notes.html">Anna's notes</a>, <a href="chart.html">who reports to whom</a>,
<a href="directory-old.html">the old directory</a></p>""",
    ),
    "/people/anna-lindqvist.html": page(
        "Anna Lindqvist", "<p>Head of service. Knows every pump by its sound. Extension 214, first floor.</p>"
    ),
    "/people/marek-dvorak.html": page(
        "Marek Dvořák", "<p>Hydraulics. Wrote the simulation of the P200 impeller. Extension 198, in the attic.</p>"
    ),
    "/people/chart.html": page(
        "Organisation chart",
        """<p>Click on a box.</p><img src="/images/chart.png" usemap="#chart" alt="chart">
<map name="chart"><area shape="rect" coords="0,0,90,40" href="board.html" alt="Board"></map>""",
    ),
    "/people/board.html": page("The board", "<p>Three people and a dog. The dog has no vote.</p>"),
    "/people/directory-old.html": page(
        "Directory of 2011",
        '<p>Out of date; see <a href="alumni.html">former colleagues</a>.</p>',
        head='<meta name="robots" content="noindex">',
    ),
    "/people/alumni.html": page("Former colleagues", "<p>They write postcards. The best ones hang in the kitchen.</p>"),
    "/news/": _news(1),
    "/news/page-2.html": _news(2),
    "/news/page-3.html": _news(3),
    "/news/anniversary.html": page(
        "Fifty years of Halden Pumps", "<p>There was cake in the shape of an impeller, and a speech that was short.</p>"
    ),
    "/news/embargo.html": page(
        "A new plant", "<p>The decision is public on Monday.</p>", headers=(*HTML, ("X-Robots-Tag", "noindex"))
    ),
    "/news/press-clippings.html": page(
        "Press clippings",
        '<p>What the papers wrote: <a href="clipping-2019.html">2019</a>.</p>',
        head='<meta name="robots" content="nofollow">',
    ),
    "/news/clipping-2019.html": page("Clipping of 2019", "<p>A photograph of the wrong building.</p>"),
    "/news/sponsor-offer.html": page("An offer", "<p>Twenty per cent off garden hoses.</p>"),
    "/news/spring-cleaning.html": page("Spring cleaning", "<p>Bring gloves. The attic is first, the cellar last.</p>"),
    "/drafts/strategy.html": page("Strategy, draft", "<p>Nobody is to read this yet.</p>"),
    "/drafts/published/vision.html": page("Our vision", "<p>Pumps that tell us when they are tired, before they stop.</p>"),
    "/payroll/june.html": page("Payroll, June", "<p>This page must never be fetched.</p>"),
    "/board-minutes/may.html": page("Board minutes, May", "<p>This page must never be fetched either.</p>"),
    "/go/travel": redirect("/go/business-travel"),
    "/go/business-travel": redirect("/handbook/travel.html", 301),
    "/go/minutes": redirect("/board-minutes/may.html"),
    "/go/broken": redirect("http://[broken/"),
    "/go/cleaning": Answer("<p>Moved.</p>", headers=(*HTML, ("Location", "/news/spring-cleaning.html"))),
    **{f"/go/floor/{floor}": redirect(f"/go/floor/{floor + 1}") for floor in range(1, 5)},
    "/go/floor/5": page("Fifth floor", "<p>Nobody has ever come this far.</p>"),
    "/loop/a": redirect("/loop/b"),
    "/loop/b": redirect("/loop/a"),
    "/old-home.html": page(
        "The home page has moved",
        "<p>You will be taken to the page of the month.</p>",
        head='<meta http-equiv="refresh" content="5; url=/page-of-the-month.html">',
    ),
    "/page-of-the-month.html": page("Page of the month", "<p>The bicycle shed has a roof at last.</p>"),
    "/legacy/": Answer(
        '<html><head><title>Intranet 1998</title></head><frameset cols="20%,80%"><frame src="menu.html"><frame src="main.html">'
        "<noframes><body>Your browser is too old for this page.</body></noframes></frameset></html>"
    ),
    "/legacy/menu.html": Answer('<html><title>Menu</title><body><a href="main.html" target="main">Start</a></body></html>'),
    "/legacy/main.html": Answer(
        '<html><title>Welcome to 1998</title><body>You are visitor 4711. <a href="catalogue.html">Catalogue</a></body></html>'
    ),
    "/legacy/catalogue.html": Answer(
        "<html><title>Catalogue 1998</title><body>Two pumps, a valve, prices in marks.</body></html>"
    ),
    "/links.html": page(
        "Machines we can reach from here",
        """<p>The <a href="http://127.0.0.2:8942/pumps/">catalogue</a>, <a href="http://localhost:8943/faq.html">help</a>,
and <a href="http://169.254.169.254/latest/meta-data/">what the cloud tells its machines</a>.</p>""",
    ),
    "/archive/1998/q1/january/week2/memo.html": page("Memo", "<p>The fax machine is to be used for faxes only.</p>"),
    "/archive/1998/q1/january/week2/monday/memo.html": page("Memo of Monday", "<p>See the other memo.</p>"),
}
