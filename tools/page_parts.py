"""Parts of tools/test_page.py: models of texts, of functions, of tasks, trained ones; hostile words; the playground."""

import html
import json
import pathlib

from browser import ELEMENT

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORY = "return document.querySelector('.story').textContent"
LEFT, RIGHT, HOME, END = "\ue012", "\ue014", "\ue011", "\ue010"
HARDMAX = "x=1&a=-1%2C0.2&b=-1%2C-0.4&kappa=0.6&kind=hardmax"
HOSTILE = [
    "</script><script>window.hacked=1</script>",
    "<img/src=x/onerror=window.hacked=2>",
    "\"'><svg/onload=window.hacked=3>",
    "__proto__",
    "constructor",
    "toString",
    "&lt;b&gt;",
    "{{7*7}}${7*7}",
    "\u202egnp.exe",
    "\u0645\u0631\u062d\u0628\u0627",
    "tab\tand\nline",
    "\u0000\u0007\u001b[31m",
    "\u2028\u2029",
    "<!--",
    "long" * 300,
]


def check(what, holds, more=""):
    if not holds:
        raise SystemExit(f"FAILED: {what} {more}")
    print(f"ok: {what}")


def quiet(browser, what):
    complaints = browser.complaints()
    check(f"{what}: nothing on the console", complaints == [], complaints)
    foreign = [url for url in browser.requests() if not url.startswith(("file:", "data:", "about:"))]
    check(f"{what}: no request to the network", foreign == [], foreign)


def text(browser, monolayer, room):
    """A text model recites in the page what the program recites."""
    monolayer("memorize", "--text", ROOT / "LICENSE-MIT", "--out", room / "text-model", "-q")
    monolayer("report", room / "text-model", "--out", room / "text.html")
    told = json.loads(monolayer("generate", room / "text-model", "--json", "-q"))["text"].split()
    browser.look(1400, 1000, dark=False)
    browser.open(room / "text.html")
    browser.script("document.querySelector('.recital button').click()")
    browser.until("reciting", "return document.querySelectorAll('.sentence button').length > 20")
    browser.script("document.querySelector('.recital button').click()")
    words = browser.script("const { tour } = document.querySelector('.tour'); while (tour.recital.step()); return tour.words")
    check(f"the page recites {len(words)} words as the program does", words == told)
    said = browser.script("return document.querySelector('.recital [role=status]').textContent")
    check("and says so", said == f"{len(told)} of {len(told)} tokens, all as in the text", said)
    browser.open(room / "text.html", "sentence=1&word=40&attention=off")
    said = browser.script("return document.querySelector('.recital [role=status]').textContent")
    check("without attention it goes astray", said.startswith("astray at token"), said)
    quiet(browser, "a text")


def approximation(browser, monolayer, room):
    """An approximated function: the page's model and f against the program's, by hand and by keyboard."""
    model, f = room / "function", "x1*mean(x1) - min(x2, 0.5)^2; max(x1) + sum(own1*x2)/3"
    monolayer("approximate", "--function", f, "--dim", 2, "--length", 2, "--grid", 4, "--out", model, "-q")
    monolayer("report", model, "--out", room / "approximation.html")
    browser.look(1400, 1000, dark=False)
    browser.open(room / "approximation.html")
    check("the bound is named", "proved, rounding included" in browser.script(STORY), browser.script(STORY))
    draws = [[[(0.137 * (k + 1) * (t + 2) + 0.31 * c) % 1 for c in range(2)] for t in range(2)] for k in range(60)]
    data = room / "draws.jsonl"
    data.write_text("".join(json.dumps({"tokens": rows}) + "\n" for rows in draws))
    outputs = json.loads(monolayer("predict", model, data, "--json", "-q"))["outputs"]
    found = browser.script("const { approximation: a } = document.querySelector('.approximation'); return arguments[0].map((rows) => a.model.run(rows))", draws)
    far = max(abs(x - y) for a, b in zip(outputs, found) for u, v in zip(a, b) for x, y in zip(u, v))
    check(f"the page's model is the program's, to {far:.0e}", far < 1e-9)
    true = [
        [[x1 * (rows[0][0] + rows[1][0]) / 2 - min(x2, 0.5) ** 2, max(rows[0][0], rows[1][0]) + x1 * (rows[0][1] + rows[1][1]) / 3] for x1, x2 in rows]
        for rows in draws
    ]
    found = browser.script("const { approximation: a } = document.querySelector('.approximation'); return arguments[0].map((rows) => rows.map((_, k) => a.f(rows, k)))", draws)
    far = max(abs(x - y) for a, b in zip(true, found) for u, v in zip(a, b) for x, y in zip(u, v))
    check(f"and f is f, to {far:.0e}", far < 1e-12)
    before = browser.script(STORY)
    browser.drag(".disc", 200)
    moved = browser.script("return document.querySelector('.approximation').approximation.rows[0][0]")
    check("a token can be dragged", moved > 0.3 and browser.script(STORY) != before, moved)
    browser.script("document.querySelectorAll('.disc')[1].focus()")
    browser.press(HOME)
    browser.press(RIGHT)
    now = browser.script("return document.querySelector('.approximation').approximation.rows[1][0]")
    check("and moved by keyboard", now == 0.01 and "token 2" in browser.script(STORY), now)
    quiet(browser, "an approximation")


def start_token(browser, monolayer, room):
    """A task whose model has a start token: labels as the program's, with the start token shown."""
    task = "task:sort:alphabet=3,length=1..4"
    monolayer("memorize", task, "--out", room / "sort", "-q")
    monolayer("report", room / "sort", "--data", task, "--out", room / "sort.html")
    browser.open(room / "sort.html")
    wrong = browser.script("""
        const { tour } = document.querySelector(".tour");
        return tour.data.sentences.flatMap((s) => tour.model.run(s.words).filter((token, t) => tour.model.labels[token.label] !== s.labels[t])).length""")
    check("a task's labels are right", wrong == 0, wrong)
    check("the start token is shown", browser.script("return document.querySelectorAll('.sentence .start').length") == 1)
    quiet(browser, "a task")


def trained(browser, monolayer, room):
    """A trained model: no curve of one point."""
    data = ROOT / "examples" / "harbor.conll"
    for name, epochs, curves in (("once", 2, False), ("often", 30, True)):
        monolayer("train", data, "--out", room / name, "--epochs", epochs, "-q")
        monolayer("report", room / name, "--out", room / f"{name}.html")
        browser.open(room / f"{name}.html")
        points = browser.script("""
            return [...document.querySelectorAll("svg.plot[data-plot]")].flatMap((svg) => JSON.parse(svg.dataset.plot).series.map((s) => s.points.length))""")
        check(f"curves of {epochs} epochs have points: {points}", all(n > 1 for n in points) and bool(points) == curves)
    quiet(browser, "trained models")


def hostile(browser, monolayer, room):
    """Words and labels that would like to be code; each word with a neighbor that decides its label."""
    sequences = []
    for i, word in enumerate(HOSTILE):
        other = HOSTILE[(i + 1) % len(HOSTILE)]
        sequences += [([word, other], [word, "O"]), ([word, "plain"], ["O", "O"])]
    data = room / "hostile.jsonl"
    data.write_text("".join(json.dumps({"tokens": words, "labels": labels}) + "\n" for words, labels in sequences))
    monolayer("memorize", data, "--out", room / "hostile", "-q")
    monolayer("report", room / "hostile", "--data", data, "--out", room / "hostile.html")
    browser.look(1400, 1000, dark=False)
    browser.open(room / "hostile.html")
    words = browser.script("return document.querySelector('.tour').tour.data.sentences.map((s) => s.words[0])")
    check("hostile words are held as they are", set(HOSTILE) <= set(words), words)
    for i in range(len(words)):
        browser.script("""
            const { tour } = document.querySelector('.tour');
            tour.showPicked(arguments[0]);
            tour.switches.give(0, 0);
            tour.rerun();
            for (const node of document.querySelectorAll('.sentence button, .curve circle, .part')) node.dispatchEvent(new PointerEvent('pointerenter', { clientX: 5, clientY: 5 }));
            tour.restore(location.hash);""", i)
    check("no word of the data became code", browser.script("return window.hacked") is None)
    check("nor an element", browser.script("return document.querySelectorAll('img, [onerror], [onload]').length") == 0)
    shown = browser.script("return document.querySelector('main').innerText")
    check("nothing turns the direction of writing", not any(c in shown for c in "\u202e\u0000\u001b\u2028"))
    wrong = browser.script("""
        const { tour } = document.querySelector('.tour');
        return tour.data.sentences.flatMap((s) => tour.model.run(s.words).filter((token, t) => tour.model.labels[token.label] !== s.labels[t])).length""")
    check("and all labels are right", wrong == 0, wrong)
    quiet(browser, "hostile words")


def framed(browser, page, room):
    """The page inside another one, as notebooks show it: with no address of its own."""
    source = html.escape(page.read_text(encoding="utf-8"), quote=True)
    (room / "framed.html").write_text(f'<!DOCTYPE html><iframe sandbox="allow-scripts" srcdoc="{source}" width="900" height="700"></iframe>')
    browser.open(room / "framed.html")
    browser.call("POST", "/frame", {"id": {ELEMENT: browser.find("iframe")}})
    browser.script("document.querySelector('.hardmax').click()")
    browser.until("the count inside a frame", "return document.querySelector('.count').dataset.right")
    check("the page works inside another one", "Hardmax lets" in browser.script(STORY), browser.script(STORY))
    browser.call("POST", "/frame", {"id": None})
    quiet(browser, "a page inside another one")


def playground(browser):
    page = ROOT / "docs" / "playground.html"
    ids = "return [...document.querySelectorAll('.id')].map((node) => parseFloat(node.firstChild.textContent.replace('−', '-')))"
    story = "return document.getElementById('story').textContent"
    browser.look(1400, 1000, dark=False)
    browser.open(page)
    quiet(browser, "the playground")
    a, b = browser.script(ids)
    check("at first the ids are apart", abs(a - b) > 0.05 and "apart" in browser.script(story), (a, b))
    browser.script("document.getElementById('hardmax').focus()")
    browser.press(" ")
    a, b = browser.script(ids)
    check("hardmax: they coincide", a == b and "coincide" in browser.script(story) and "largest" in browser.script(story), (a, b))
    browser.press(LEFT)
    a, b = browser.script(ids)
    check("softmax by the arrow key: apart again", a != b, (a, b))
    browser.drag("#b1", 150)
    moved = browser.script(ids)
    check("a token can be dragged", moved[1] != b and moved[0] == a, moved)
    browser.script("document.getElementById('b2').focus()")
    for _ in range(3):
        browser.press(RIGHT)
    check("and moved by keyboard", browser.script("return document.getElementById('b2').getAttribute('aria-valuenow')") == "-0.25")
    check("focus stays", browser.script("return document.activeElement.id") == "b2")
    state = browser.until("the address has it", "return location.hash.includes('-0.25') && location.hash.slice(1)")
    now = browser.script(ids)
    browser.open(page, state)
    check("a view can be shared", browser.script(ids) == now)
    for k, same in ((1, True), (2, False), (3, True), (4, False), (5, True)):
        browser.script("document.querySelectorAll('#try button')[arguments[0] - 1].click()", k)
        a, b = browser.script(ids)
        check(f"case {k}: {browser.script(story)[-60:]}", (abs(a - b) < 0.001) == same, (a, b))
    browser.script("document.getElementById('more').click()")
    check("four tokens", browser.script("return document.querySelectorAll('.disc').length") == 8)
    far = browser.script("""
        // The weighted mean, by the definition, in another order.
        const tokens = [0.3, -1.2, 0.9, 1.7], y = 1.3, e = tokens.map((p) => Math.exp(y * p));
        const plain = tokens.reduce((s, p, i) => s + p * e[i], 0) / e.reduce((s, x) => s + x, 0);
        return Math.abs(mix(tokens, y, false).id - plain) + Math.abs(mix(tokens, y, true).id - 1.7) + Math.abs(mix(tokens, -y, true).id + 1.2) + Math.abs(mix(tokens, 0, true).id - 0.425);""")
    check("g is the Boltzmann operator", far < 1e-12, far)
    for broken in ("x=9", "a=1&b=2", "x=0&a=1,2&b=1,2,3&kappa=1", "x=NaN&a=NaN,1&b=0,0&kappa=-1"):
        browser.open(page, broken)
        check(f"an address with {broken} does no harm", "apart" in browser.script(story))
    quiet(browser, "the playground")
