#!/usr/bin/env python3
"""Documents: links and files that they name exist, drawings are made from their source, lists of rooms are whole. Sentences are short,
in documents, comments, man pages and what programs say."""

import ast
import re
import statistics
import subprocess
import sys
import tempfile
import tokenize
import unittest
from pathlib import Path

from tidy import CODE, ROOMS, ROOT, files, name

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(p for p in files("docs", "src", "tools", "tests", "bench", "examples", "packaging") if p.suffix == ".md")])
MOST_WORDS, MEDIAN_WORDS = 35, 18
SENTENCE_ENDS = r"(?<=[.!?])[)*\"]*\s+"  # neither a colon nor a semicolon does, but before a list


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
        for sentence in re.split(SENTENCE_ENDS, " ".join(paragraph.split())):
            words = re.findall(r"[^\W_][\w'-]*", sentence)
            if words:
                yield len(words), sentence


def comments(path, mark="//"):
    """Comments of whole lines, those of neighbouring lines as one; without indented examples."""
    block = []
    for line in [*path.read_text().splitlines(), ""]:
        comment = re.match(rf"\s*{mark} ?(?!---|  |$)(.*)$", line)
        if comment:
            block.append(comment[1])
        elif block:
            yield " ".join(block)
            block = []


def shell_comments(path):
    return comments(path, "#(?!!)")


def is_shell(path):
    return re.match(rb"#!.*\b(ba|da|z)?sh\b", path.read_bytes()[:80])


def python_comments(path):
    """The same of Python, and what modules, classes and functions say of themselves."""
    with tokenize.open(path) as source:
        block, last = [], 0
        for token in tokenize.generate_tokens(source.readline):
            if token.type != tokenize.COMMENT or token.string.startswith("#!"):
                continue
            whole = token.line.lstrip().startswith("#")
            if block and not (whole and token.start[0] == last + 1):
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0] if whole else 0
        yield " ".join(block)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield from re.split(r"\n\s*\n|\n\s*(?=- )", ast.get_docstring(node) or "")


def is_python(path):
    return path.suffix == ".py" or (not path.suffix and path.read_bytes()[:40].startswith(b"#!/usr/bin/env python3"))


def spoken(path):
    """What a program says: its texts of several words, help and messages alike."""
    text = re.sub(r"^\s*(//|#\s*include).*$", "", path.read_text(), flags=re.M)
    for found in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', text):
        said = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', found[0]))
        if said.count(" ") >= 3 and "var(--" not in said:  # a style sheet
            yield from re.split(r"\\n", said)


def man_paragraphs(path):
    """Running text, without synopsis and examples."""
    text = re.sub(r"^\.SH SYNOPSIS.*?(?=^\.SH)|^\.nf.*?^\.fi", "", path.read_text(), flags=re.M | re.S)
    for paragraph in re.split(r"^\.(?:SH|SS|TP|PP|IP|RS|RE|TH).*$|^$", text, flags=re.M):
        yield re.sub(r"^\.[A-Z]+ |\\f[BIRP]|\\", "", paragraph, flags=re.M)


def short_text(text):
    """Sentences of it, with their words; lists of the fields of a record are none."""
    text = re.sub(r"`[^`]*`", "code", text)
    for sentence in re.split(SENTENCE_ENDS, " ".join(text.split())):
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

    def expect_short(self, what, texts, fewest=100):
        """`texts`: pairs of a file and the words and text of a sentence in it."""
        lengths = [words for _, (words, _) in texts]
        for path, (words, sentence) in texts:
            self.assertLessEqual(words, MOST_WORDS, f"{name(path)}: {sentence}")
        self.assertGreaterEqual(len(lengths), fewest, what)
        self.assertLess(statistics.median(lengths), MEDIAN_WORDS, what)

    def test_comments_messages_and_man_pages_are_short(self):
        code = {folder: [p for p in files(folder) if p.suffix in CODE] for folder in ("src", "tools", "tests", "bench")}
        scripts = {folder: [p for p in files(folder) if is_python(p)] for folder in ("tests", "bench")}
        parts = [*((f"comments of {folder}", paths, comments) for folder, paths in code.items()),
                 *((f"comments of scripts in {folder}", paths, python_comments) for folder, paths in scripts.items()),
                 *((f"help and messages of {folder}", code[folder], spoken) for folder in ("tools", "src")),
                 ("man pages", sorted((ROOT / "docs/man").iterdir()), man_paragraphs)]
        for what, paths, paragraphs in parts:
            self.expect_short(what, [(p, found) for p in paths for text in paragraphs(p) for found in short_text(text)])
        shell = [p for p in [*ROOT.glob("*"), *files("tests", "bench", "examples", "packaging", ".ci")] if p.is_file() and is_shell(p)]
        self.expect_short("comments of shell scripts", [(p, found) for p in shell for text in shell_comments(p) for found in short_text(text)], 50)
        for path in files("examples"):
            if path.suffix in CODE:
                self.expect_short(name(path), [(path, found) for text in comments(path) for found in short_text(text)], 1)

    def test_drawings_are_made_from_their_source(self):
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([sys.executable, ROOT / "docs/images/drawings.py", place], check=True)
            for made in sorted(Path(place).iterdir()):
                self.assertEqual(made.read_text(), (ROOT / "docs/images" / made.name).read_text(),
                                 f"{made.name}: run docs/images/drawings.py")

    def test_sentences_are_short(self):
        self.assertGreater(len(DOCUMENTS), 40)
        for path in DOCUMENTS:
            self.expect_short(name(path), [(path, found) for found in sentences(path)], 1)

    def test_figures_of_the_lists_are_right(self):
        """Of rules that are taken out, and of what is fuzzed."""
        sys.path.append(str(ROOT / "tests/mutation"))
        from mutation_test import RULES
        reliability = (ROOT / "docs/reliability.md").read_text()
        self.assertIn(f"\n{len(RULES)} rules of {len({rule.hazard for rule in RULES})} hazards are taken out", reliability)
        sys.path.append(str(ROOT / "tests/runner"))
        from main import FUZZ_TARGETS
        cmake = (ROOT / "tests/fuzz/CMakeLists.txt").read_text()
        targets = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"TARGETS ([a-z_ ]+)\)", cmake))))
        self.assertEqual(targets, set(FUZZ_TARGETS))
        section = reliability.split("## Hostile images")[1].split("\n## ")[0]
        self.assertEqual(targets, {target for target in targets if f"`{target}`" in section})

    def test_the_tour_knows_every_room(self):
        """In an order in which each room stands behind those that it uses."""
        listed = re.search(r"uses only rooms before it:(.*?)\.\n", (ROOT / "docs/tour.md").read_text(), re.S)
        rooms = re.findall(r"`([\w/]+)`", listed[1])
        self.assertEqual(sorted(rooms), sorted(ROOMS))
        for room, uses in ROOMS.items():
            for used in uses:
                self.assertLess(rooms.index(used), rooms.index(room), f"docs/tour.md: {room} uses {used}")


if __name__ == "__main__":
    unittest.main(verbosity=1)
