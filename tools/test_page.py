"""The report page in a real browser: tools/test_page.py MONOLAYER [PICTURES]

MONOLAYER is the program; PICTURES a directory for pictures of the page (default: target/page).
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from browser import Browser, missing

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOSTILE = [
    "</script><script>window.hacked=1</script>",
    "<img/src=x/onerror=window.hacked=2>",
    "\"'><svg/onload=window.hacked=3>",
    "__proto__",
    "constructor",
    "&lt;b&gt;",
    "{{7*7}}${7*7}",
]


def check(what, holds, more=""):
    if not holds:
        raise SystemExit(f"FAILED: {what} {more}")
    print(f"ok: {what}")


def monolayer(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True)
    check(f"monolayer {arguments[0]}", done.returncode == 0, done.stderr)
    return done.stdout


def hostile_data(path):
    """Words and labels that would like to be code; each word with a neighbor that decides its label."""
    lines = []
    for i, word in enumerate(HOSTILE):
        lines += [f"{word} {HOSTILE[0]}", f"{HOSTILE[(i + 1) % len(HOSTILE)]} O", "", f"{word} O", "plain O", ""]
    path.write_text("\n".join(lines))


def quiet(browser, what):
    complaints = browser.complaints()
    check(f"{what}: nothing on the console", complaints == [], complaints)
    foreign = [url for url in browser.requests() if not url.startswith(("file:", "data:"))]
    check(f"{what}: no request to the network", foreign == [], foreign)


def tour(browser, page):
    browser.look(1600, 1000, dark=False)
    browser.open(page)
    quiet(browser, "the page")
    far = browser.script("""
        const tour = document.querySelector(".tour").tour;
        let far = 0;
        tour.data.ids.forEach((ids, i) => tour.model.run(tour.data.sentences[i].words).forEach((token, t) => {
            far = Math.max(far, Math.abs(token.id - ids[t]) / (1 + Math.abs(ids[t])));
        }));
        return far;""")
    check(f"ids of the page's own forward pass are the library's, to {far:.0e}", far < 1e-12)
    wrong = browser.script("""
        const tour = document.querySelector(".tour").tour;
        return tour.data.sentences.flatMap((s) => tour.model.run(s.words)
            .flatMap((token, t) => tour.model.labels[token.label] === s.labels[t] ? [] : [s.words[t]]));""")
    check("labels of the page's own forward pass are the data's, but for the contradictions", sorted(wrong) == ["Grace", "Mark"], wrong)

    facts = "return document.querySelector('.facts').textContent"
    seen = []
    for k in (1, 2, 4):
        browser.hover(f".sentence button:nth-child({k})")
        seen.append(browser.script(facts))
    check("hovering shows another word", len(set(seen)) == 3)
    check("a word's facts are complete", all("query y" in s and ("leads by" in s or "cannot be lost to rounding" in s) and "context" in s for s in seen), seen)
    check("the fourth word is a date", seen[2].startswith("LabelDATE, as in the data"), seen[2])
    browser.script("document.querySelector('.sentence button').focus()")
    first = browser.script(facts)
    browser.press("\ue014")
    check("arrow keys move along the sentence", browser.script(facts) != first)
    browser.hover(".curve circle.context")
    check("contexts name their sentences", "id" in browser.script("return document.getElementById('tip').textContent"))

    browser.type(".own", "May sails in June .")
    check("a typed sentence is run", browser.script("return document.querySelectorAll('.sentence button').length") == 5)
    check("and measured, not proved", "Measured, not proved" in browser.script(facts))
    browser.type(".own", " submarine")
    said = browser.script("return document.querySelector('.message').textContent")
    check("an unknown word is named", "“submarine”" in said, said)
    quiet(browser, "the tour")


def figures(browser):
    browser.hover("svg.plot[data-plot]:not(.narrow svg)", 40, 20)
    tip = browser.script("return [...document.querySelectorAll('#tip div')].map((line) => line.textContent)")
    check("figures show values under the pointer", len(tip) >= 3 and all(":" in line for line in tip[1:3]), tip)
    check("every plot names its axes", browser.script("""
        return [...document.querySelectorAll("svg.plot[data-plot]")].map((svg) => JSON.parse(svg.dataset.plot))
            .every((plot) => plot.x.label && plot.x.unit && plot.y.label && plot.y.unit);"""))
    quiet(browser, "figures")


def looks(browser, page, pictures):
    for width in (400, 1600):
        for dark in (False, True):
            browser.look(width, 900, dark)
            browser.open(page)
            wide = browser.script("return document.documentElement.scrollWidth")
            check(f"at {width} px nothing sticks out", wide <= width, wide)
            browser.picture(pictures / f"{page.stem}-{width}-{'dark' if dark else 'light'}.png")
    browser.look(1600, 900, dark=False)
    browser.chrome("Emulation.setEmulatedMedia", media="print")
    shown = browser.script("return getComputedStyle(document.querySelector('.controls')).display")
    check("controls are not printed", shown == "none", shown)


def hostile(browser, page):
    browser.look(1600, 1000, dark=False)
    browser.open(page)
    words = browser.script("return document.querySelector('.tour').tour.data.sentences.map((s) => s.words[0])")
    check("hostile words are shown as they are", set(HOSTILE) <= set(words), words)
    for i in range(len(words)):
        browser.script("document.querySelector('.tour').tour.showPicked(arguments[0])", i)
        browser.hover(".sentence button")
        browser.hover(".curve circle")
    check("no word of the data became code", browser.script("return window.hacked") is None)
    check("nor an element", browser.script("return document.querySelectorAll('img, [onerror], [onload]').length") == 0)
    quiet(browser, "hostile words")


def main():
    if missing():
        raise SystemExit(f"SKIPPED: {missing()} is not installed")
    pictures = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "target" / "page")
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as room, Browser() as browser:
        room = pathlib.Path(room)
        monolayer("memorize", ROOT / "examples" / "harbor.conll", "--out", room / "harbor")
        monolayer("experiment", "hardmax", "--quick", "--out", room / "hardmax")
        monolayer("report", room / "harbor", room / "hardmax", "--out", room / "page.html")
        check("the page is below 5 MB", (room / "page.html").stat().st_size < 5_000_000)
        tour(browser, room / "page.html")
        figures(browser)
        looks(browser, room / "page.html", pictures)
        hostile_data(room / "hostile.conll")
        monolayer("memorize", room / "hostile.conll", "--out", room / "hostile")
        monolayer("report", room / "hostile", "--data", room / "hostile.conll", "--out", room / "hostile.html")
        hostile(browser, room / "hostile.html")
    print(json.dumps({"pictures": str(pictures)}))


main()
