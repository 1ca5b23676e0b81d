#!/usr/bin/env python3
"""What a filesystem is called, and that every command finds it by any of its names; metrics and first lines of the status."""

import re
import socket
import urllib.request

from harness import *


LABEL = f"old{os.getpid()}"  # block devices of others are looked through for it, too


def varve(*words, **more):
    return command(BIN / "varve", *words, **more)


class Names(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.image.mkfs("64M", "-L", LABEL)

    def tearDown(self):
        self.image.check_all()

    def test_every_command_takes_any_name(self):
        self.image.mount()
        uuid = self.image.status()["uuid"]
        (self.image.dir / "deep/er").mkdir(parents=True)
        for place in (self.image.path, self.image.dir, self.image.dir / "deep/er", f"UUID={uuid}", f"LABEL={LABEL}"):
            for words in (["status", "-s"], ["checkpoint"], ["trim"], ["tune"], ["top", "-b", "-n", "1"], ["history"], ["scrub", "--status"],
                          ["map", "--rows", "2"], ["metrics"], ["label"], ["clean", "-n"]):
                varve(*words, place)
        self.assertEqual(varve("label", self.image.dir).stdout, f"{LABEL}\n")
        varve("umount", self.image.path)
        self.assertFalse(self.image.is_mounted())

    @unittest.skipUnless(IS_ROOT, "needs root and a loop device")
    def test_a_tag_finds_what_is_not_mounted(self):
        loop = command("losetup", "--show", "-f", self.image.path).stdout.strip()
        try:
            for words in (["dump", "superblock"], ["status", "-s"]):
                varve(*words, f"LABEL={LABEL}")
            self.assertIn("no errors", command(BIN / "fsck.varve", "-n", f"LABEL={LABEL}").stdout)
            out = self.image.folder / "out"
            varve("salvage", f"LABEL={LABEL}", out)
            self.assertTrue(out.is_dir())
        finally:
            command("losetup", "-d", loop)

    def test_a_directory_is_no_device(self):
        self.image.mount()
        for words in ([BIN / "fsck.varve", "-n", self.image.dir], [BIN / "varve", "salvage", self.image.dir, self.image.folder / "out"],
                      [BIN / "varve", "dump", "superblock", self.image.dir]):
            done = command(*words, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"{self.image.path} is mounted there: `varve umount {self.image.dir}` first", done.stderr)

    def test_label_and_uuid_of_an_image(self):
        varve("label", self.image.path, "with blanks")
        varve("uuid", self.image.path, "01234567-89ab-cdef-0123-456789abcdef")
        self.image.fsck()
        self.assertEqual(varve("label", self.image.path).stdout, "with blanks\n")
        shown = varve("probe", "--export", self.image.path).stdout
        self.assertIn("ID_FS_TYPE=varve\n", shown)
        self.assertIn("ID_FS_UUID=01234567-89ab-cdef-0123-456789abcdef\n", shown)
        self.assertIn("ID_FS_LABEL_ENC=with\\x20blanks\n", shown)
        varve("label", self.image.path, "../a/b")  # udev makes a link of that name
        self.assertIn("ID_FS_LABEL_ENC=..\\x2fa\\x2fb\n", varve("probe", "--export", self.image.path).stdout)
        varve("label", self.image.path, 'the "old" one\\')
        self.assertIn('LABEL="the \\"old\\" one\\\\"', varve("probe", self.image.path).stdout)
        varve("label", self.image.path, "")
        self.assertNotIn("LABEL", varve("probe", self.image.path).stdout)
        self.image.mount()
        self.assertEqual(self.image.status()["uuid"], "01234567-89ab-cdef-0123-456789abcdef")

    def test_a_label_says_nothing_to_a_terminal(self):
        self.image.mount()
        for place in (self.image.dir, self.image.path):
            for label in ("a\nb", "a\x1b[31mb", "a\udcffb"):  # the last one is no UTF-8
                refused = varve("label", place, label, check=False)
                self.assertIn("a label is UTF-8 without control characters", refused.stderr)
            self.assertEqual(varve("label", place).stdout, f"{LABEL}\n")
            if self.image.is_mounted():
                self.image.umount()

    def test_label_and_uuid_of_a_mount_survive_a_crash(self):
        self.image.mount()
        (self.image.dir / "f").write_text("kept")
        varve("label", self.image.dir, "new")
        varve("uuid", self.image.dir, "random")
        uuid = self.image.status()["uuid"]
        self.assertRegex(uuid, r"^[0-9a-f-]{14}4")
        self.image.kill()
        varve("umount", self.image.dir)
        self.assertIn('LABEL="new"', varve("probe", self.image.path).stdout)
        self.image.mount()
        self.assertIn('LABEL="new"', varve("probe", self.image.dir).stdout)
        self.assertEqual((self.image.status()["label"], self.image.status()["uuid"]), ("new", uuid))
        self.assertEqual((self.image.dir / "f").read_text(), "kept")
        varve("label", self.image.dir, "twice")
        self.image.remount()
        self.assertEqual(self.image.status()["label"], "twice")

    def test_the_status_begins_with_what_people_ask(self):
        self.image.mount()
        lines = varve("status", self.image.dir).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[:6]], ["Varve", "Mounted", "State", "Size", "Cleaner", "Log"])
        self.assertIn("no errors", lines[2])
        self.image.kill()
        for place in (self.image.dir, self.image.path, self.image.dir / "below", self.image.dir / "far/below"):
            said = varve("status", "-s", place).stdout
            self.assertIn("its daemon is gone", said)
            self.assertRegex(said, r"\nLog +\S.*log=")
        self.assertRegex(varve("umount", self.image.dir).stderr, "its daemon is gone; clearing the mount point. Its log: .*log=")
        self.image.mount()

    def test_programs_and_people_read_what_is_dumped_and_watched(self):
        self.image.mount()
        views = [json.loads(line) for line in varve("top", "--json", "-n", "2", "-d", "0.1", self.image.dir).stdout.splitlines()]
        self.assertEqual([view["label"] for view in views], [LABEL, LABEL])
        self.image.umount()
        shown = varve("dump", "superblock", self.image.path).stdout
        self.assertRegex(shown, r"^first and second, which are equal\n")
        self.assertRegex(shown, r"\n *made +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9} UTC\n")

    def test_magic_is_known_to_file(self):
        if not shutil.which("file"):
            self.skipTest("no file(1)")
        said = command("file", "-m", ROOT / "packaging/recognition/magic", self.image.path).stdout
        self.assertIn('Varve log-structured filesystem, version 1, label "' + LABEL + '"', said)
        self.assertIn(varve("uuid", self.image.path).stdout.strip(), said)


class Doctor(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.addCleanup(clean_up_all)

    def findings(self, place):
        return json.loads(varve("doctor", "--json", place, check=False).stdout)

    def test_options_are_judged(self):
        self.image.mkfs("64M")
        self.image.mount("noatime,cleaner=off,commit=300")
        judged = [(found["grade"], found["text"].split(":")[0]) for found in self.findings(self.image.dir) if found["subject"] == "options" and found["text"].startswith(("cleaner", "commit"))]
        self.assertEqual(judged, [("slow", "cleaner=off"), ("unsafe", "commit=300")])
        self.assertEqual(self.image.status()["mount"]["options"].split(",")[:3], ["noatime", "cleaner=off", "commit=300"])
        self.image.remount("commit=30")
        self.assertNotIn("commit", json.dumps([found["text"] for found in self.findings(self.image.dir)]))
        self.image.check_all()

    def test_what_is_no_filesystem_gets_no_advice_for_one(self):
        text = self.image.folder / "text"
        for content in (b"hello\n", b"hello\n" * 100000):
            text.write_bytes(content)
            os.chmod(text, 0o666)
            found = self.findings(text)
            self.assertIn("broken", [one["grade"] for one in found if one["subject"] == "image"])
            self.assertFalse([one for one in found if "chmod" in one["advice"] or "fsck.varve -n" in one["advice"]])


class Metrics(unittest.TestCase):
    def setUp(self):
        self.image = Image()
        self.image.mkfs("64M", "-L", 'a "b"')
        self.image.mount()
        for i in range(20):
            (self.image.dir / f"f{i}").write_bytes(os.urandom(5000))

    def tearDown(self):
        self.image.check_all()

    def test_text_is_well_formed(self):
        text = varve("metrics", self.image.dir).stdout
        self.assertTrue(text.endswith("# EOF\n"))
        self.assertIn(f'mount="{self.image.dir}"', text)
        by_operation = {}
        for operation, count in re.findall(r'varve_request_seconds_bucket\{[^}]*operation="(\w+)"[^}]*\} (\d+)', text):
            by_operation.setdefault(operation, []).append(int(count))
        for operation, counts in by_operation.items():
            self.assertEqual(counts, sorted(counts), operation)
        self.assertGreaterEqual(sum(by_operation.get(name, [0])[-1] for name in ("create", "mknod")), 20)
        uuid = self.image.status()["uuid"]
        self.assertRegex(text, rf'# TYPE varve_filesystem info\n.*\nvarve_filesystem_info\{{.*label="a \\"b\\"",uuid="{uuid}"\}} 1\n')
        self.assertIn("\nvarve_available_bytes{", text)
        older = varve("metrics", "--format", "prometheus", self.image.dir).stdout
        self.assertIn("# TYPE varve_flushes_total counter\n", older)
        if shutil.which("promtool"):
            command("promtool", "check", "metrics", input=older)

    def test_alerts_and_the_dashboard_use_what_is_there(self):
        told = set()
        for family, kind in re.findall(r"^# TYPE (\w+) (\w+)", varve("metrics", "--format", "prometheus", self.image.dir).stdout, re.M):
            told |= {family + suffix for suffix in ("_bucket", "_count", "_sum")} if kind == "histogram" else {family}
        for file in ("prometheus/varve.rules.yml", "grafana/varve.json"):
            used = set(re.findall(r"\bvarve_\w+", (ROOT / "packaging" / file).read_text()))
            self.assertGreater(len(used), 5, file)
            self.assertFalse(used - told, file)

    def listening(self, place):
        server = subprocess.Popen([BIN / "varve", "metrics", "--all", "--listen", place])
        self.addCleanup(lambda: (server.terminate(), server.wait(HANG)))
        return server

    def test_over_a_port(self):
        port, server = 0, None

        def listen():
            nonlocal port, server
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            server = self.listening(f"127.0.0.1:{port}")

        def get(path="/metrics"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=HANG) as answer:
                return answer.headers["Content-Type"], answer.read().decode()

        def answers():
            try:
                return get()
            except OSError:
                if server.poll() is not None:  # somebody else has taken the port meanwhile
                    listen()
                return None
        listen()
        wait_until(answers, "the server answers")
        kind, text = get()
        self.assertIn("openmetrics-text", kind)
        self.assertIn("varve_device_bytes", text)
        with self.assertRaises(urllib.error.HTTPError):
            get("/etc/passwd")
        with socket.create_connection(("127.0.0.1", port)) as silent:  # keeps nobody else from being served
            self.assertIn("# EOF", get()[1])
            silent.sendall(b"\0" * 20000)

    def test_a_mount_that_does_not_answer_is_down_and_holds_up_no_other(self):
        up = f'varve_up{{mount="{self.image.dir}",device="{self.image.path}"}}'
        self.assertIn(f"{up} 1\n", varve("metrics", self.image.dir).stdout)
        other = Image()
        other.mkfs("64M")
        other.mount()
        daemon = other.daemon()
        down = f'varve_up{{mount="{other.dir}",device="{other.path}"}} 0\n'
        try:
            stop(daemon)
            done = varve("metrics", "--all")
            self.assertIn(down, done.stdout)
            self.assertIn(f"{up} 1\n", done.stdout)
            self.assertIn("does not answer", done.stderr)
        finally:
            os.kill(daemon, signal.SIGCONT)
        other.kill()
        done = varve("metrics", "--all")
        self.assertIn(down, done.stdout)
        self.assertIn(f"{up} 1\n", done.stdout)
        done = command(BIN / "varve", "metrics", other.dir, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f'varve_up{{mount="{other.dir}",device=""}} 0\n', done.stdout)
        other.mount()
        other.check_all()

    def test_who_asks_a_stopped_daemon_hears_what_is_waited_for(self):
        daemon = self.image.daemon()
        for words in (["resize", self.image.dir], ["snapshot", "create", self.image.dir, "one"], ["status", self.image.dir]):
            stop(daemon)
            try:
                asking = subprocess.Popen([BIN / "varve", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                self.addCleanup(asking.kill)
                said = asking.stderr.readline()  # the test's own time limit ends it should nothing be said
                self.assertIn(f"varve: {self.image.dir}: waiting for its daemon, which does not answer", said, words)
                self.assertIsNone(asking.poll())
            finally:
                os.kill(daemon, signal.SIGCONT)
            asking.communicate(timeout=HANG)
            self.assertEqual(asking.returncode, 0, words)

    def test_the_socket_of_another_program_stays(self):
        path = self.image.folder / "another.sock"
        with socket.socket(socket.AF_UNIX) as another:
            another.bind(str(path))
            another.listen()
            done = command(BIN / "varve", "metrics", "--all", "--listen", f"unix:{path}", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("ddress already in use", done.stderr)
            self.assertTrue(path.exists())
        server = self.listening(f"unix:{path}")  # nobody listens there any more
        wait_until(lambda: stat.S_IMODE(path.stat().st_mode) == 0o600 if path.exists() else False, "it is ours now")
        path.unlink()
        path.touch()
        server.terminate()
        self.assertEqual(server.wait(HANG), 0)
        self.assertTrue(path.exists())

    def test_over_a_socket_for_its_owner(self):
        path = self.image.folder / "metrics.sock"
        server = self.listening(f"unix:{path}")
        wait_until(path.exists, "the socket is there")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        self.assertIn(b"# EOF", answer)
        server.terminate()
        self.assertEqual(server.wait(HANG), 0)
        self.assertFalse(path.exists())


if __name__ == "__main__":
    main()
