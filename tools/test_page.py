"""The report page and the playground in a real browser: tools/test_page.py MONOLAYER [PICTURES]

MONOLAYER is the program; PICTURES a directory for pictures of the pages (default: target/page).
"""

import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import page_parts
from browser import Browser, missing
from page_parts import ROOT, check, quiet

RIGHT, HOME, SPACE = "\ue014", "\ue011", "\ue00d"
FACTS = "return document.querySelector('.facts').textContent"
STORY = "return document.querySelector('.story').textContent"
COUNT = "return document.querySelector('.count').dataset.right"
LABELS = """
    const tour = document.querySelector(".tour").tour;
    return arguments[0].map((words) => tour.model.run(words, tour.how).map((token) => tour.model.labels[token.label]));"""


def monolayer(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True)
    check(f"monolayer {arguments[0]}", done.returncode == 0, done.stderr)
    return done.stdout


def predicted(model, sentences, room):
    """The labels that the program finds."""
    data = room / "sentences.jsonl"
    data.write_text("".join(json.dumps({"tokens": words}) + "\n" for words in sentences))
    return json.loads(monolayer("predict", model, data, "--json", "-q"))["labels"]


def corpus():
    """The sentences of the embedded corpus."""
    text = (ROOT / "examples" / "harbor.conll").read_text()
    return [[line.split()[0] for line in block.splitlines()] for block in text.strip().split("\n\n")]


def typed(count):
    """Sentences that nobody has seen, of words that the model knows."""
    words = sorted({word for sentence in corpus() for word in sentence})
    draw = random.Random(7)
    return [[draw.choice(words) for _ in range(draw.randint(1, 8))] for _ in range(count)]


def changed(model, room, name, change):
    """A copy of a model directory with something changed."""
    copy = room / name
    shutil.copytree(model, copy)
    change(copy)
    return copy


def with_hardmax(model):
    config = model / "config.json"
    config.write_text(config.read_text().replace('"softmax"', '"hardmax"'))


def with_kappa(factor):
    """Multiplies W_Q, which is stored in plain single precision."""

    def change(model):
        file = model / "model.safetensors"
        data = bytearray(file.read_bytes())
        start = 8 + struct.unpack("<Q", data[:8])[0]
        tensor = json.loads(data[8:start])["layers.0.attention.w_q"]
        check("W_Q is stored in F32", tensor["dtype"] == "F32")
        for at in range(start + tensor["data_offsets"][0], start + tensor["data_offsets"][1], 4):
            data[at : at + 4] = struct.pack("<f", factor * struct.unpack("<f", data[at : at + 4])[0])
        file.write_bytes(data)

    return change


def same_labels(browser, page, model, room):
    """Labels of the page's own forward pass, as it is and with switches, against the program's."""
    browser.look(1400, 1000, dark=False)
    browser.open(page)
    quiet(browser, "the page")
    sentences, made_up = corpus(), typed(200)
    found = browser.script(LABELS, sentences)
    check("every sentence of the corpus gets the program's labels", found == predicted(model, sentences, room))
    shown = browser.script(
        """const tour = document.querySelector(".tour").tour, own = document.querySelector(".own");
        return arguments[0].map((words) => {
            own.value = words.join(" ");
            own.dispatchEvent(new Event("input"));
            return [...document.querySelectorAll(".sentence button")].map((button) => button.dataset.label);
        });""",
        made_up,
    )
    rust = predicted(model, made_up, room)
    check("200 typed sentences get the program's labels", shown == rust, [x for x in zip(made_up, shown, rust) if x[1] != x[2]][:3])
    worth = json.loads(monolayer("inspect", model, "--data", ROOT / "examples" / "harbor.conll", "--json", "-q"))["worth"]
    switches = [
        ("attention=off", None, worth["right_without_attention"]),
        ("kappa=0", None, worth["right_with_mean_pooling"]),
        ("hardmax=on", with_hardmax, None),
        ("kappa=2", with_kappa(2), None),
        ("kappa=0.5", with_kappa(0.5), None),
    ]
    for state, change, right in switches:
        browser.open(page, f"sentence=1&word=1&{state}")
        if change:
            other = changed(model, room, state, change)
            for what, some in (("the corpus", sentences), ("200 others", made_up)):
                check(f"{state}: the labels of {what} are those of a model changed so", browser.script(LABELS, some) == predicted(other, some, room))
        else:
            count = browser.until("a count", COUNT)
            check(f"{state}: {right} tokens right, as `inspect` counts", int(count) == right, count)


def tour(browser, page):
    browser.open(page)
    far = browser.script("""
        const tour = document.querySelector(".tour").tour;
        let far = 0;
        tour.data.ids.forEach((ids, i) => tour.model.run(tour.data.sentences[i].words).forEach((token, t) => {
            far = Math.max(far, Math.abs(token.id - ids[t]) / (1 + Math.abs(ids[t])));
        }));
        return far;""")
    check(f"ids of the page's own forward pass are the library's, to {far:.0e}", far < 1e-5)
    off = browser.script("""
        const tour = document.querySelector(".tour").tour;
        return Math.max(...tour.data.sentences.flatMap((s) => tour.model.run(s.words).flatMap((token) => {
            const parts = tour.model.contributions(token);
            return token.scores.map((score, l) => Math.abs(parts.reduce((sum, part) => sum + part.adds[l], 0) - score) / (1 + Math.abs(score)));
        })));""")
    check(f"contributions add up to the scores, to {off:.0e}", off < 1e-5)

    check("the sentence on top says why “May” is a person", all(part in browser.script(STORY) for part in ("“May” gets the label PER", "context id", "DATE")), browser.script(STORY))
    seen = []
    for k in (1, 2, 4):
        browser.hover(f".sentence button:nth-of-type({k})")
        browser.until("another word", f"return document.querySelector('.tour').tour.selected === {k - 1}")
        seen.append(browser.script(FACTS))
    check("hovering shows another word", len(set(seen)) == 3)
    check("a word's facts are complete", all("query y" in s and "leads by" in s and "context" in s for s in seen), seen)
    check("the fourth word is a date", seen[2].startswith("LabelDATE, as in the data"), seen[2])
    check("attention is drawn as lines", browser.script("return document.querySelectorAll('.arc').length") == 4)
    browser.hover(".sentence button")
    browser.until("another word", "return document.querySelector('.tour').tour.selected === 0")
    browser.hover(".curve circle.context")
    check("contexts name their sentences", "id" in browser.script("return document.getElementById('tip').textContent"))
    browser.hover(".bars .part")
    check("bars say what they add", "adds" in browser.script("return document.getElementById('tip').textContent"))

    browser.script("document.querySelector('.own').value = ''")
    browser.type(".own", "May sails in June .")
    check("a typed sentence is run", browser.script("return document.querySelectorAll('.sentence button').length") == 5)
    check("and measured, not proved", "Measured, not proved" in browser.script(FACTS))
    browser.type(".own", " submarine")
    said = browser.script("return document.querySelector('.message').textContent")
    check("an unknown word is named", "“submarine”" in said, said)
    known = browser.script("const d = document.querySelector('.vocabulary'); d.open = true; d.dispatchEvent(new Event('toggle')); return d.querySelectorAll('button').length")
    check("the words that it knows are listed", known == len({word for sentence in corpus() for word in sentence}), known)
    quiet(browser, "the tour")


def keyboard(browser, page):
    browser.open(page)
    active = "return document.activeElement.className + ' ' + document.activeElement.textContent"
    browser.script("document.querySelector('.sentence button[tabindex=\"0\"]').focus()")
    first = browser.script(FACTS)
    browser.press(RIGHT)
    check("arrow keys move along the sentence", browser.script(FACTS) != first and "sails" in browser.script(active), browser.script(active))
    browser.press(HOME)
    check("and back to its start", browser.script(FACTS) == first)
    browser.press("\ue004")
    check("then come the switches", "attention-off" in browser.script(active), browser.script(active))
    browser.press(SPACE)
    check("attention off by the space bar", "Attention is off" in browser.script(STORY), browser.script(STORY))
    off = int(browser.until("a count", COUNT))
    wrong = browser.script("""
        const { tour } = document.querySelector(".tour"), count = () => document.querySelectorAll("button.wrong").length;
        const wrong = tour.data.sentences.map((_, i) => { tour.showPicked(i); return count(); });
        tour.showPicked(0);
        return wrong.reduce((a, b) => a + b, 0);""")
    check(f"tokens turn wrong: {wrong}", wrong == 243 - off and off < 241, off)
    browser.script("document.querySelector('.attention-off').focus()")
    browser.until("the address says so", "return location.hash.includes('attention=off')")
    browser.press(SPACE)
    browser.press("\ue004")
    browser.press(SPACE)
    check("hardmax: ids coincide", "one and the same id" in browser.script(STORY) and "Theorem 1" in browser.script(STORY), browser.script(STORY))
    browser.press(SPACE)
    browser.press("\ue004")
    browser.press(HOME)
    check("kappa 0 by the Home key", browser.script("return document.querySelector('.tour').tour.how.kappa") == 0)
    browser.script("document.querySelector('.reset').click()")
    check("and all as it was made", int(browser.until("a count", COUNT)) == 241)

    browser.script("const give = document.querySelector('.give'); give.value = [...give.options].find((o) => o.textContent === 'BOAT').value; give.dispatchEvent(new Event('change'))")
    check("a label by hand", "“May” now gets BOAT" in browser.script(STORY), browser.script(STORY))
    check("changes one token", int(browser.until("a count", COUNT)) == 240)
    state = browser.until("the address has it", "return location.hash.includes('label=1%3ABOAT') && location.hash.slice(1)")
    story = browser.script(STORY)
    browser.open(page, state)
    check("a view can be shared", browser.script(STORY) == story and int(browser.until("a count", COUNT)) == 240, browser.script(STORY))
    for broken in ("sentence=0", "sentence=99&word=-1", "text=", "sentence=1&label=%3A&kappa=x", "word=1%00&sentence=1&label=9:BOAT", "s0"):
        browser.open(page, broken)
        check(f"an address with {broken} does no harm", "gets the label" in browser.script(STORY), browser.script(STORY))
    quiet(browser, "keyboard and address")


def figures(browser, page):
    browser.open(page)
    browser.hover("svg.plot[data-plot]:not(.narrow svg)", 40, 20)
    tip = browser.script("return [...document.querySelectorAll('#tip div')].map((line) => line.textContent)")
    check("figures show values under the pointer", len(tip) >= 3 and all(":" in line for line in tip[1:3]), tip)
    check("every plot names its axes", browser.script("""
        return [...document.querySelectorAll("svg.plot[data-plot]")].map((svg) => JSON.parse(svg.dataset.plot))
            .every((plot) => plot.x.label && plot.x.unit && plot.y.label && plot.y.unit);"""))
    quiet(browser, "figures")


def looks(browser, page, pictures, states=("",)):
    for number, state in enumerate(states):
        for width in (390, 1400):
            for dark in (False, True):
                browser.look(width, 900, dark)
                browser.open(page, state)
                wide = browser.script("return document.documentElement.scrollWidth")
                check(f"{page.stem} {state}: at {width} px nothing sticks out", wide <= width, wide)
                browser.picture(pictures / f"{page.stem}-{number}-{width}-{'dark' if dark else 'light'}.png")


def printed(browser, page):
    browser.look(1400, 900, dark=False)
    browser.open(page)
    browser.chrome("Emulation.setEmulatedMedia", media="print")
    for name in (".controls", ".switches"):
        shown = browser.script("return getComputedStyle(document.querySelector(arguments[0])).display", name)
        check(f"{name} is not printed", shown == "none", shown)


def main():
    if missing():
        raise SystemExit(f"SKIPPED: {missing()} is not installed")
    pictures = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "target" / "page")
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as room, Browser() as browser:
        room = pathlib.Path(room)
        model, page = room / "harbor", room / "page.html"
        monolayer("memorize", ROOT / "examples" / "harbor.conll", "--out", model)
        monolayer("experiment", "hardmax", "--quick", "--out", room / "hardmax")
        monolayer("report", model, room / "hardmax", "--out", page)
        check("the page is below 5 MB", page.stat().st_size < 5_000_000)
        same_labels(browser, page, model, room)
        tour(browser, page)
        keyboard(browser, page)
        figures(browser, page)
        looks(browser, page, pictures, ("", "sentence=1&word=1&hardmax=on", "sentence=1&word=1&label=1%3ABOAT"))
        printed(browser, page)
        page_parts.framed(browser, page, room)
        page_parts.text(browser, monolayer, room)
        page_parts.approximation(browser, monolayer, room)
        page_parts.start_token(browser, monolayer, room)
        page_parts.trained(browser, monolayer, room)
        page_parts.hostile(browser, monolayer, room)
        for name in ("text", "approximation", "hostile"):
            looks(browser, room / f"{name}.html", pictures)
        page_parts.playground(browser)
        looks(browser, ROOT / "docs" / "playground.html", pictures, ("", page_parts.HARDMAX))
    print(json.dumps({"pictures": str(pictures)}))


main()
