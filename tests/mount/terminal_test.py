#!/usr/bin/env python3
"""The tools on a terminal: what fits it, colours, how far something has come, Ctrl-C and the status after it."""

from send_tools import *

import pty
import re
import select
import termios


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *words, columns=80, rows=24, stdin=None, stdout=None, **environment):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        inherited = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        self.process = subprocess.Popen([str(word) for word in words], stdin=stdin or slave, stdout=stdout or slave, stderr=slave,
                                        env={**inherited, "TERM": "xterm", **environment})
        os.close(slave)
        self.text = ""

    def read_until(self, condition):
        """Condition on all of the output so far."""
        end = time.monotonic() + HANG
        while not condition(self.text):
            assert time.monotonic() < end, f"not within {HANG} s; the terminal shows {self.text!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode(errors="replace")
                except OSError:  # it has ended
                    break
        return self.text

    def type(self, keys):
        self.text = ""
        os.write(self.master, keys.encode())

    def end(self):
        self.read_until(lambda _: self.process.poll() is not None)
        while select.select([self.master], [], [], 0)[0]:
            try:
                self.text += os.read(self.master, 65536).decode(errors="replace")
            except OSError:
                break
        os.close(self.master)
        return self.process.wait(HANG)


def frames(text):
    """What top draws: each frame as its lines, without escapes."""
    found = []
    for frame in text.split("\x1b[H")[1:]:
        if "\x1b[J" in frame:  # all of it has come
            found.append(re.sub(r"\x1b\[[?0-9]*[A-Za-z]", "", frame.split("\x1b[J")[0]).replace("\r", "").split("\n"))
    return found


class Top(MountTest):
    size = "256M"

    def page(self, terminal, number):
        terminal.read_until(lambda text: frames(text) and re.search(number, frames(text)[-1][-1]))
        return frames(terminal.text)[-1]

    def test_fits_the_terminal_page_by_page(self):
        for columns, rows in ((80, 24), (40, 12)):
            terminal = Terminal(BIN / "varve", "top", "-d", "3600", self.dir, columns=columns, rows=rows)
            pages = [self.page(terminal, "q: quit")]
            footer = re.search(r"1 of (\d+)", pages[0][-1])  # a narrow one has no room for it
            count = int(footer[1]) if footer else 0
            for _ in range(count - 1):
                terminal.type(" ")
                pages.append(self.page(terminal, rf"{len(pages) + 1} of {count}"))
            for page in pages:
                self.assertLessEqual(len(page), rows)
                for line in page:
                    self.assertLessEqual(len(line), columns, line)
            self.assertEqual(count > 0, columns == 80)
            if count:
                self.assertTrue(any(line.startswith("Space") for line in pages[0]), pages[0])
                self.assertTrue(any("Write cost" in line for page in pages for line in page))
                self.assertTrue(any("Requests" in line for page in pages for line in page))
            terminal.type("?")
            for line in self.page(terminal, "any key"):
                self.assertLessEqual(len(line), columns, line)
            terminal.type("q")
            self.assertEqual(terminal.end(), 0)

    def test_a_terminal_that_only_prints_gets_no_escapes(self):
        terminal = Terminal(BIN / "varve", "top", "-n", "2", "-d", "0.1", self.dir, TERM="dumb")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn("\x1b", terminal.text)
        self.assertEqual(terminal.text.count("Write cost"), 2)

    def test_colours(self):
        fill_random(self.dir / "f", 4 * MIB)
        for environment, words, has_colours in (({}, (), True), ({"TERM": "dumb"}, (), False), ({"NO_COLOR": "1"}, (), False),
                                                ({"NO_COLOR": ""}, (), True), ({"NO_COLOR": "1"}, ("--color=always",), True)):
            terminal = Terminal(BIN / "varve", "map", *words, self.dir, **environment)
            self.assertEqual(terminal.end(), 0)
            self.assertEqual("\x1b[48" in terminal.text, has_colours, (environment, words))


class Interrupted(SendTest):
    """What a signal ends says what is left and how to go on, and which signal it was."""

    def receiving(self, target, *words, **environment):
        reading, self.feed = os.pipe()
        terminal = Terminal(BIN / "varve", "receive", target, *words, stdin=reading, **environment)
        os.close(reading)
        return terminal

    def stream_of_much(self):
        fill_random(self.dir / "f", 40 * MIB)
        self.snapshot("one")
        self.send("one")
        return self.stream.read_bytes()

    def test_receive(self):
        stream = self.stream_of_much()
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            target = self.other.dir / str(status)
            target.mkdir()
            terminal = self.receiving(target)
            os.write(self.feed, stream[:-MIB])  # returns when nearly all of it was read
            terminal.process.send_signal(number)
            self.assertEqual(terminal.end(), status, terminal.text)
            os.close(self.feed)
            self.assertRegex(terminal.text, r"interrupted: no snapshot.*\s+.*To go on, receive the same stream again")
            self.receive(target, 0, "--name", str(status))
            self.assertEqual((target / "f").read_bytes(), (self.dir / "f").read_bytes())

    def write_slowly(self, stream):
        for at in range(0, len(stream), MIB):
            os.write(self.feed, stream[at:at + MIB])
            time.sleep(0.05)  # what ends within half a second shows no progress
        os.close(self.feed)

    def test_progress_fits_the_terminal_and_is_wiped(self):
        stream = self.stream_of_much()
        for environment in ({}, {"TERM": "dumb"}):
            target = self.other.dir / f"with{len(environment)}"
            target.mkdir()
            terminal = self.receiving(target, "--name", target.name, **environment)
            feeding = Beside(lambda: self.write_slowly(stream))
            terminal.read_until(lambda text: "received" in text)
            feeding.end()
            self.assertEqual(terminal.end(), 0, terminal.text)
            if environment:
                self.assertNotIn("\x1b", terminal.text)
                continue
            lines = terminal.text.split("\r\x1b[K")
            (result,) = [line for line in lines if line.startswith("with0: ")]
            self.assertRegex(result, r"^with0: \d+ changes, .*\r\n$")
            for line in lines:  # progress: also behind the result, until the stream has ended
                self.assertLess(len(line), 80)
                self.assertTrue(line == result or "\n" not in line, line)

    def test_mkfs_removes_what_it_made(self):
        image = self.image.folder / "new.img"
        for number, status in ((signal.SIGINT, 130), (signal.SIGHUP, 129)):
            process = subprocess.Popen([BIN / "mkfs.varve", "--prewrite", "--size", "16G", image], stderr=subprocess.PIPE, text=True)
            wait_until(lambda: image.exists() and image.stat().st_blocks > 1000, "some of it is written")
            process.send_signal(number)
            said = process.communicate(timeout=HANG)[1]
            self.assertEqual((process.returncode, image.exists()), (status, False), said)
            self.assertIn("interrupted", said)
            self.assertIn("was removed again", said)

    def test_the_table_of_exit_statuses(self):
        """Each status of the table in varve(1) is one that is met here or above."""
        manual = (ROOT / "docs/man/varve.1").read_text().split(".SH EXIT STATUS")[1].split(".SH ")[0]
        self.assertEqual(re.findall(r"^\.B (\d+)$", manual, re.M), ["0", "1", "129", "130", "143"])
        varve("status", self.dir, expect=0)
        for words in (("status", "/nowhere"), ("status",), ("nothing",), ("status", "--nothing", self.dir)):
            varve(*words, expect=1)

    def test_errors_for_programs(self):
        for words in (("status", "--json", "/nowhere"), ("probe", "--json", "/nowhere"), ("diff", "--json", self.dir, "none"),
                      ("status", "--json"), ("scrub", "--json", "/nowhere"), ("nothing", "--json"), ("snapshot", "nothing", "--json")):
            done = varve(*words, expect=1)
            error = json.loads(done.stdout)
            self.assertEqual(error["exit_status"], 1)
            if "nothing" in words:
                self.assertEqual(done.stderr.splitlines()[0], error["error"])
            elif len(words) > 2:
                self.assertEqual(done.stderr, f"varve: {error['error']}\n")
        for tool, words, status in (("mkfs.varve", ("--json", "/nowhere/x"), 1), ("fsck.varve", ("-n", "--json", "/nowhere/x"), 8)):
            done = command(BIN / tool, *words, check=False)
            self.assertEqual((done.returncode, json.loads(done.stdout)["exit_status"]), (status, status), done)


if __name__ == "__main__":
    main()
