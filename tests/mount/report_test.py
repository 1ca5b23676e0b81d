#!/usr/bin/env python3
"""varve report: one page that needs nothing else, in light and dark, of names that try to be HTML. A headless Chromium looks at it where there
is one."""

import html.parser
import re
import zlib

from harness import *

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LEFT_OPEN = {"html", "meta", "dt", "dd", "tr", "th", "td", "p", "input", "br", "rect"}  # HTML ends these itself
NO_BROWSER = f"NO BROWSER HERE ({', '.join(BROWSERS)}): how the page looks was not tested"
LABEL = '<b>&"\'x'
SECTIONS = ("Health, and what to do", "Space", "Map of the device", "Write cost and lifetime")


class Page(html.parser.HTMLParser):
    """What a browser would see: tags, attributes, text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.raw, self.tags, self.attributes, self.text, self.open = text, [], [], "", []
        self.wrong = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in LEFT_OPEN:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in LEFT_OPEN:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.text += data

    def style(self):
        return "".join(re.findall(r"(?s)<style>(.*?)</style>", self.raw))


def browser():
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def first_pixel(path):
    """Of a PNG of 8 bits a channel: nothing is before it, so that no filter changes it."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    packed, at = b"", 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            assert data[at + 16] == 8, "bits of a channel"
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    return tuple(zlib.decompress(packed)[1:4])


class Pages(MountTest):
    size = "64M"

    def setUp(self):
        super().setUp()
        fill_random(self.dir / "file", 5 * MIB)
        command(BIN / "varve", "label", self.dir, LABEL)

    def page(self, of):
        path = self.image.folder / "report.html"
        command(BIN / "varve", "report", of, "-o", path)
        return Page(path.read_text())


class Report(Pages):
    def page_of_image(self):
        """Under a name that would be a tag."""
        self.image.umount()
        name = self.image.folder / "<script>alert(1)<&amp;.img"
        os.link(self.image.path, name)
        return self.page(name)

    def check(self, page):
        self.assertTrue(page.raw.startswith("<!doctype html>"))
        self.assertEqual((page.wrong, page.open), ([], []))
        self.assertIn(LABEL, page.text)
        for title in SECTIONS:
            self.assertIn(f"<h2>{title}</h2>", page.raw)
        self.assertEqual([], sorted(set(page.tags) & {"script", "link", "iframe", "img", "object", "embed", "form", "base", "b"}))

    def check_offline(self, page):
        for tag, name, value in page.attributes:
            self.assertNotIn(name, ("src", "href", "srcset", "action", "data", "background", "xlink:href"), f"{tag} {value}")
            self.assertFalse(name.startswith("on"), f"{tag} {name}: a script")
        self.assertNotRegex(page.raw, r"(?i)https?://|//[a-z0-9-]+\.[a-z]|url\(|@import|javascript:")

    def check_colours(self, page):
        light, dark = (dict(re.findall(r"--([a-z]+):(#[0-9a-f]+)", part))
                       for part in page.style().split("@media(prefers-color-scheme:dark)"))
        self.assertEqual(set(light), set(dark))
        self.assertLessEqual(set(re.findall(r"var\(--([a-z]+)\)", page.raw)), set(light))
        self.assertIn("color-scheme:light dark", page.style())
        for scheme in (light, dark):
            self.assertGreaterEqual(contrast(scheme["text"], scheme["ground"]), 4.5)
            for role in ("text", "soft", "good", "note", "slow", "unsafe", "broken"):
                self.assertGreaterEqual(contrast(scheme[role], scheme["card"]), 4.5, role)

    def check_map(self, page):
        """Each colour of a map is in its legend, under the same name of the style sheet where it has one."""
        views = re.findall(r'(?s)<div class="view view\d">(.*?)</p></div>', page.raw)
        self.assertEqual(len(views), 4)
        for view in views:
            drawn = set(re.findall(r'<rect [^>]*fill="([^"]+)"', view))
            told = set(re.findall(r'class=key style="background:([^"]+)"', view))
            self.assertLessEqual(drawn, told)
            self.assertIn("var(--free)", drawn)

    def check_space(self, page):
        """What is free is shown as free: the parts of each bar fill it, and the free one is as wide as df says."""
        space = page.raw.partition("<h2>Space</h2>")[2].partition("</section>")[0]
        for bar in re.findall(r"<div class=bar>(.*?)</div>", space):
            self.assertAlmostEqual(sum(map(float, re.findall(r"width:([\d.]+)%", bar))), 100, delta=0.1)
        widths = re.findall(r"width:([\d.]+)%;background:var\(--free\)", space)
        blocks = self.image.status()["space"]
        self.assertAlmostEqual(float(widths[0]), 100 * blocks["available_blocks"] / blocks["device_blocks"], delta=2)

    def test_of_a_mount(self):
        page = self.page(self.dir)
        self.check_map(page)
        self.check_space(page)
        self.assertIn(f"{self.dir}/file, 5.0 MiB", page.text)  # the owner
        for word in ("Median", "p99"):
            self.assertIn(f"<th>{word}", page.raw)
        self.assertIn("<th>State<td>mounted for", page.raw)
        self.assertIn("@media(max-width:640px)", page.style())
        self.assertIn("<td class=w data-l=Do><", page.raw)  # where nothing is to be done the cell is empty: no label stands in it
        self.check(page)
        self.check_offline(page)
        self.check_colours(page)
        self.assertIn("Latencies since the mount", page.text)

    def test_a_link_is_written_through(self):
        real, link = self.image.folder / "real.html", self.image.folder / "report.html"
        link.symlink_to(real)
        real.touch()
        self.check(self.page(self.dir))
        self.assertTrue(link.is_symlink())
        self.check(Page(real.read_text()))
        with (self.image.folder / "shown.html").open("wb+") as out:
            subprocess.run([BIN / "varve", "report", self.dir, "-o", "/proc/self/fd/1"], stdout=out, check=True)
            self.check(Page((self.image.folder / "shown.html").read_text()))

    def test_of_an_image(self):
        page = self.page_of_image()
        self.check(page)
        self.check_offline(page)
        self.check_colours(page)
        self.assertIn("<script>alert(1)<&amp;.img", page.text)
        self.assertNotIn("Latencies since the mount", page.text)


class Browser(Pages):
    def browse(self, page, *options):
        home = self.image.folder / "browser"
        command(browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
                "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={home}", *options, f"file://{page}",
                timeout=300, env={**os.environ, "HOME": str(home)})

    def test_in_a_browser(self):
        if not browser():
            self.skipTest(NO_BROWSER)
        self.page(self.dir)
        page, grounds = self.image.folder / "report.html", []
        for number, scheme in ((1, "light"), (0, "dark")):
            shot = self.image.folder / f"{scheme}.png"
            self.browse(page, f"--blink-settings=preferredColorScheme={number}", "--window-size=1000,1400", f"--screenshot={shot}")
            grounds.append(sum(first_pixel(shot)) / 3)
            if keep := os.environ.get("VARVE_KEEP_SCREENSHOTS"):
                shutil.copy(shot, keep)
        self.assertGreater(grounds[0], 200, "light")
        self.assertLess(grounds[1], 60, "dark")


def contrast(one, other):
    def luminance(colour):
        colour = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(colour[i:i + 2], 16) / 255 for i in (0, 2, 4)]
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    lower, upper = sorted((luminance(one), luminance(other)))
    return (upper + 0.05) / (lower + 0.05)


if __name__ == "__main__":
    if sys.argv[1:] == ["Browser"] and not browser():
        skip(NO_BROWSER)
    main()
