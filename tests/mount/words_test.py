#!/usr/bin/env python3
"""What users say in words that other tools know, and what programs are told in JSON."""

from snapshot_tools import *

import re
import socket


class Words(MountTest):
    size = "128M"

    def read_json(self, *words, **more):
        return json.loads(varve(*words, **more).stdout)

    def test_words_of_ext4(self):
        """What fstab may have from another filesystem stops no mount. What Varve does in another way is told."""
        self.image.umount()
        done = self.image.mount("defaults,acl,user_xattr,errors=remount-ro,noatime")
        self.assertNotIn("ext4", done.stderr)
        self.image.umount()
        done = self.image.mount("errors=panic,data=journal")
        self.assertIn("errors=panic is one of ext4 and changes nothing here", done.stderr)
        self.assertIn("data=journal is one of ext4 and changes nothing here", done.stderr)

    def test_what_may_only_be_read_says_how(self):
        self.image.umount()
        device = command("losetup", "-r", "-f", "--show", self.image.path).stdout.strip()
        try:
            done = command(BIN / "varve", "mount", device, self.dir, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("only read-only use is possible, as mount -o ro", done.stderr)
            command(BIN / "varve", "mount", device, self.dir, "-o", "ro")
            command(BIN / "varve", "umount", self.dir)
        finally:
            command("losetup", "-d", device)

    def test_rates_and_names(self):
        varve("scrub", "-r", "10MB/s", self.dir)
        varve("snapshot", "create", self.dir, "--", "-x")
        varve("snapshot", "delete", self.dir, "--", "-x")
        varve("label", self.dir, "--", "-y")
        self.assertEqual(varve("label", self.dir).stdout, "-y\n")

    def test_json_of_all_that_changes_something(self):
        self.assertEqual(self.read_json("label", "--json", self.dir, "new"), {"label": "new"})
        self.assertEqual(self.read_json("label", "--json", self.dir), {"label": "new"})
        self.assertEqual(self.read_json("uuid", "--json", self.dir)["uuid"], self.image.status()["uuid"])
        self.assertEqual(self.read_json("snapshot", "create", "--json", self.dir, "one"), {"name": "one"})
        unnamed = self.read_json("snapshot", "create", "--json", self.dir)["name"]
        self.assertEqual(self.read_json("snapshot", "delete", "--json", self.dir, unnamed), {"deleted": [unnamed]})
        (self.dir / "later").write_text("later")
        restored = self.read_json("restore", "--json", "--delete", self.dir, "--from", "one")
        self.assertIn({"change": "removed", "path": "/later"}, restored["changes"])
        self.assertEqual(restored["data_bytes"], 0)
        report = self.read_json("report", "--json", self.dir)
        self.assertEqual((report["status"]["label"], type(report["findings"])), ("new", list))
        if IS_ROOT:
            (self.dir / "copy").mkdir()
            stream = self.image.folder / "stream"
            with open(stream, "wb") as out:
                subprocess.run([BIN / "varve", "send", self.dir, "one"], stdout=out, check=True)
            with open(stream, "rb") as stdin:
                received = self.read_json("receive", "--json", self.dir / "copy", "--name", "two", stdin=stdin)
            self.assertEqual((received["name"], received["sent_as"]), ("two", "one"))

    def branches_with_json(self):
        """Commands with --json, each in all of its branches that end well, in an order in which they do."""
        one = ["snapshot", "create", self.dir, "one"], ["snapshot", "create", self.dir, "two"], ["snapshot", "delete", self.dir, "two"]
        mounted = [["label", self.dir, "new"], ["label", self.dir], ["uuid", self.dir], ["uuid", self.dir, "random"], *one,
                   ["snapshot", "list", self.dir], ["snapshot", "list", "--auto", self.dir], ["snapshot", "show", self.dir, "one"],
                   ["diff", self.dir, "one"], ["snapshot", "diff", self.dir, "one"], ["versions", self.dir / "gone"],
                   ["restore", "-n", self.dir, "--from", "one"], ["undelete", self.dir], ["undelete", "-n", self.dir, "gone"],
                   ["undelete", self.dir, "gone", "lost"], ["undelete", self.dir], ["snapshot", "restore", self.dir, "--from", "one"],
                   ["list"], ["status", self.dir], ["status", "-s", self.dir], ["status", "--all"], ["top", "-b", "-n", "1", self.dir],
                   ["map", self.dir], ["map", "--by", "owner", self.dir], ["map", "--png", self.image.folder / "picture.png", self.dir],
                   ["clean", "-n", self.dir], ["clean", "-n", "--all", self.dir], ["clean", "-s", "compacting", "--all", self.dir],
                   ["history", self.dir], ["scrub", "--status", self.dir], ["scrub", "-b", self.dir], ["scrub", "--stop", self.dir],
                   ["scrub", "--restart", self.dir], ["resize", "-n", self.dir], ["resize", self.dir, "max"], ["resize", "--cancel", self.dir],
                   ["checkpoint", self.dir], ["trim", self.dir], ["tune", self.dir], ["tune", self.dir, "history=100"],
                   ["doctor", self.dir], ["report", self.dir], ["report", "-o", self.image.folder / "page.html", self.dir],
                   ["probe", self.image.path], ["receive", "--last", self.dir / "copy"], ["receive", "--resume-token", self.dir / "copy"]]
        unmounted = [["dump", "superblock", self.image.path], ["salvage", self.image.path, self.image.folder / "saved"], ["status", self.image.path],
                     ["trial", "--with", "varve", "--seconds", "1", "--yes", "-f", "-o", self.image.folder / "trial.json", self.image.path]]
        return mounted, unmounted

    @unittest.skipUnless(IS_ROOT, "receive takes root, or owners are lost")
    def test_json_is_all_that_is_printed_with_it(self):
        (self.dir / "copy").mkdir()
        for name in ("gone", "lost"):
            (self.dir / name).write_text("here")
        varve("snapshot", "create", self.dir, "before")
        stream = subprocess.run([BIN / "varve", "send", self.dir, "before"], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run([BIN / "varve", "receive", self.dir / "copy", "--name", "sent"], input=stream, check=True)
        again = subprocess.run([BIN / "varve", "receive", "--json", self.dir / "copy", "--name", "sent again"], input=stream, stdout=subprocess.PIPE)
        self.check_json(again.stdout.decode(), "receive again")
        for name in ("gone", "lost"):
            (self.dir / name).unlink()
        mounted, unmounted = self.branches_with_json()
        for words in mounted:
            self.check_json(command(BIN / "varve", *words, "--json", check=False).stdout, words)
        self.image.umount()
        for words in unmounted:
            self.check_json(command(BIN / "varve", *words, "--json", check=False).stdout, words)
        tried = {words[1] if words[0] == "snapshot" else words[0] for words in mounted + unmounted}
        completion = (ROOT / "packaging/varve.bash-completion").read_text()
        flags = re.findall(r"(?m)^    ([a-z |-]+)\) echo \"[^\"]*--json", completion)
        named = {name.removeprefix("snapshot-") for line in flags for name in line.split(" | ")}
        self.assertEqual(named - tried, set(), "commands with --json that this test leaves out")

    def test_json_of_fsck_and_mkfs(self):
        self.image.umount()
        undo = self.image.folder / "undo"
        for words in (["-n"], ["-f", "-n", "--data"], ["-y", "-f", "--undo", undo], ["--undo-apply", undo, "-f"]):
            self.check_json(command(BIN / "fsck.varve", *words, "--json", self.image.path, check=False).stdout, words)
        for words in (["-n"], ["-f"]):
            self.check_json(command(BIN / "mkfs.varve", *words, "--json", "--size", "64M", self.image.folder / "new", check=False).stdout, words)

    def check_json(self, text, words):
        """One document, or one in each line."""
        self.assertTrue(text.strip(), words)
        try:
            json.loads(text)
        except ValueError:
            for line in text.splitlines():
                try:
                    json.loads(line)
                except ValueError:
                    self.fail(f"{words}: {line}")

    def test_metrics_are_as_the_client_asks(self):
        place = self.image.folder / "metrics"
        server = subprocess.Popen([BIN / "varve", "metrics", "--listen", f"unix:{place}", self.dir])
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        wait_until(place.exists, "it listens")
        modern, older = "application/openmetrics-text", "text/plain; version=0.0.4"
        for accept, expected in (("", modern), ("Accept: */*\r\n", modern), ("Accept: text/plain\r\n", older),
                                 ("Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n", modern),
                                 ("Accept: application/openmetrics-text; q=0.5, text/plain\r\n", older)):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(place))
                client.sendall(f"GET /metrics HTTP/1.1\r\nHost: here\r\n{accept}\r\n".encode())
                answer = b""
                while piece := client.recv(65536):
                    answer += piece
            head, body = answer.decode().split("\r\n\r\n", 1)
            self.assertIn(f"Content-Type: {expected}", head, accept)
            self.assertEqual("# EOF" in body, expected == modern)

    def test_numbers_of_one(self):
        self.image.umount()
        self.assertRegex(self.image.fsck().stdout, r"\b1 directory\n")


if __name__ == "__main__":
    main()
