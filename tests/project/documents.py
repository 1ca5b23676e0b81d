#!/usr/bin/env python3
"""Documents: links and files that they name exist, drawings are made from their source, sentences are short."""

import re
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/README.md"), *ROOT.glob("bench/**/*.md")]]
# Plain from the first sentence to the last. A document that is rewritten joins them.
PLAIN = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/tour.md", "docs/design.md", "docs/format.md", "docs/posix.md",
         "docs/network.md", "docs/performance.md", "docs/cleaning.md", "docs/devices.md", "docs/reliability.md",
         *(f"bench/{bench}/README.md" for bench in ("cleaning", "devices", "latency", "models", "network", "peers")),
         *(p.relative_to(ROOT).as_posix() for p in sorted(ROOT.glob("src/**/README.md")))]
MOST_WORDS, MEDIAN_WORDS = 35, 18


def name(path):
    return path.relative_to(ROOT).as_posix()


def anchors(path):
    """As GitHub makes them from headings."""
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def sentences(path):
    """Of running text: no code, no tables, no headings."""
    text = re.sub(r"```.*?```", "\n\n", path.read_text(), flags=re.S)
    text = re.sub(r"^\s*(\|.*|#.*)$", "\n", text, flags=re.M)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"^\s*([-*]|\d+\.) ", "\n\n", text, flags=re.M)
    for paragraph in re.split(r"\n\s*\n", text):
        for sentence in re.split(r"(?<=[.!?:])[)*\"]*\s+", " ".join(paragraph.split())):
            words = re.findall(r"[^\W_][\w'-]*", sentence)
            if words:
                yield len(words), sentence


def comments(path):
    """Comments of whole lines, those of neighbouring lines as one."""
    block = []
    for line in [*path.read_text().splitlines(), ""]:
        comment = re.match(r"\s*// ?(?!---)(.*)$", line)
        if comment:
            block.append(comment[1])
        elif block:
            yield " ".join(block)
            block = []


def man_paragraphs(path):
    """Running text, without synopsis and examples."""
    text = re.sub(r"^\.SH SYNOPSIS.*?(?=^\.SH)|^\.nf.*?^\.fi", "", path.read_text(), flags=re.M | re.S)
    for paragraph in re.split(r"^\.(?:SH|SS|TP|PP|IP|RS|RE|TH).*$|^$", text, flags=re.M):
        yield re.sub(r"^\.[A-Z]+ |\\f[BIRP]|\\", "", paragraph, flags=re.M)


def short_text(text):
    """Sentences of it, with their words; lists of the fields of a record are none."""
    text = re.sub(r"`[^`]*`", "code", text)
    for sentence in re.split(r"(?<=[.!?:;])[)*\"]*\s+", " ".join(text.split())):
        words = re.findall(r"[^\W_][\w'-]*", sentence)
        if words and not re.search(r"\bu32\b.*\bu32\b|\bu64\b.*\bu64\b", sentence):
            yield len(words), sentence


class Documents(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for path in DOCUMENTS:
            text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                file, _, anchor = target.partition("#")
                place = (path.parent / file).resolve() if file else path
                self.assertTrue(place.exists(), f"{name(path)}: {target}")
                if anchor and place.suffix == ".md":
                    self.assertIn(anchor, anchors(place), f"{name(path)}: {target}")

    places = [name(p) for folder in ("src", "tools", "tests", "bench") for p in (ROOT / folder).rglob("*") if p.is_file()]

    def test_named_files_exist(self):
        for path in DOCUMENTS:
            for file in re.findall(r"`((?:src|docs|tests|tools|bench|packaging|examples)/[\w./-]+|\w+(?:/\w+)+\.(?:h|cc))`", path.read_text()):
                known = (ROOT / file).exists() or any(place.endswith("/" + file) for place in self.places)
                self.assertTrue(known, f"{name(path)} names {file}, which there is not")

    def test_comments_and_man_pages_are_short(self):
        sources = [path for folder in ("src", "tools") for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cc")]
        for paths, paragraphs in ((sources, comments), ((ROOT / "docs/man").iterdir(), man_paragraphs)):
            lengths = []
            for path in paths:
                for words, sentence in (found for text in paragraphs(path) for found in short_text(text)):
                    lengths.append(words)
                    self.assertLessEqual(words, MOST_WORDS, f"{name(path)}: {sentence}")
            self.assertGreater(len(lengths), 200)
            self.assertLess(statistics.median(lengths), MEDIAN_WORDS)

    def test_drawings_are_made_from_their_source(self):
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([sys.executable, ROOT / "docs/images/drawings.py", place], check=True)
            for made in sorted(Path(place).iterdir()):
                self.assertEqual(made.read_text(), (ROOT / "docs/images" / made.name).read_text(),
                                 f"{made.name}: run docs/images/drawings.py")

    def test_sentences_are_short(self):
        for file in PLAIN:
            found = list(sentences(ROOT / file))
            for words, sentence in found:
                self.assertLessEqual(words, MOST_WORDS, f"{file}: {sentence}")
            self.assertLess(statistics.median(words for words, _ in found), MEDIAN_WORDS, file)


if __name__ == "__main__":
    unittest.main(verbosity=1)
