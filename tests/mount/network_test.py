#!/usr/bin/env python3
"""Mounts over NBD: real servers (nbdkit, qemu-nbd) that are killed, stay away, or serve another machine; a take-over between two
network namespaces with a database on the mount."""

import errno
import re

from network_tools import *


class NetworkTest(unittest.TestCase):
    def setUp(self):
        if not shutil.which("nbdkit"):
            self.skipTest("no nbdkit")
        if why := why_unknown("nbd+unix:///?socket=/nowhere"):
            self.skipTest(why)
        self.folder = new_folder()
        self.addCleanup(clean_up_all)
        self.disk = self.folder / "disk"
        with open(self.disk, "wb") as disk:
            disk.truncate(512 * MIB)

    def serve(self, *words, **more):
        server = Server(*words, folder=self.folder, **more)
        self.addCleanup(server.kill)
        return server

    def mounted(self, server, options=""):
        export = Export(server.uri, self.folder)
        export.mkfs()
        export.mount(options)
        return export


class DyingMedium(NetworkTest):
    """nbdkit's error filter fails reads for as long as a file is there."""

    def setUp(self):
        super().setUp()
        if command("nbdkit", "--filter=error", "memory", "--dump-plugin", check=False).returncode:
            self.skipTest("nbdkit without its error filter")
        self.breaks = self.folder / "breaks"
        errors = ["error-pread=EIO", "error-pread-rate=100%", f"error-file={self.breaks}"]
        self.server = self.serve("--filter=error", "file", self.disk, *errors)

    def doctor(self, export):
        done = command(BIN / "varve", "doctor", "--json", export.dir, check=False)
        return done.returncode, [found for found in json.loads(done.stdout) if found["subject"] == "medium"]

    def unreadable(self, export):
        for line in command(BIN / "varve", "metrics", export.dir).stdout.splitlines():
            if line.startswith("varve_unreadable_total"):
                return int(line.split()[-1])
        self.fail("no such metric")

    def test_failed_reads_of_file_data_are_counted_and_judged(self):
        log = self.folder / "log"
        export = self.mounted(self.server)
        for i in range(5):
            fill_random(export.dir / f"f{i}", 4096, seed=i)
        export.remount(f"log={log}")
        files = [open(export.dir / f"f{i}", "rb", buffering=0) for i in range(5)]
        self.addCleanup(lambda: [file.close() for file in files])
        self.assertEqual((self.unreadable(export), self.doctor(export)[1]), (0, []))
        self.breaks.touch()
        with self.assertRaises(OSError) as caught:
            files[0].read(4096)
        self.breaks.unlink()
        self.assertEqual(caught.exception.errno, errno.EIO)
        inode = os.fstat(files[0].fileno()).st_ino
        status = export.status()
        self.assertGreaterEqual(status["faults"]["unreadable"], 1)
        self.assertEqual((status["faults"]["damaged"], status["faults"]["places_last_hour"]), (0, 1))
        self.assertGreaterEqual(status["traffic"]["device_read_errors"], 1)
        self.assertEqual(status["lifetime"]["errors"], status["faults"]["unreadable"])
        self.assertEqual(self.unreadable(export), status["faults"]["unreadable"])
        for event in (status["first_error"], status["last_error"]):
            self.assertEqual((event["error"], event["inode"]), ("io", inode))
        self.assertRegex(log.read_text(), f"inode {inode}: block 0 of the file .block {status['last_error']['block']} of .* cannot be read")
        code, (found,) = self.doctor(export)
        self.assertEqual((code, found["grade"]), (0, "unsafe"))
        self.breaks.touch()
        for file in files[1:]:
            with self.assertRaises(OSError):
                file.read(4096)
        self.breaks.unlink()
        code, (found,) = self.doctor(export)
        self.assertEqual((code, found["grade"]), (1, "broken"))
        self.assertIn("the medium is failing: 5 blocks", found["text"])
        self.assertIn("error", command(BIN / "varve", "status", "-s", export.dir).stdout)
        self.assertFalse(export.status()["read_only"])
        for i, file in enumerate(files):  # it was the medium, and it is better now
            self.assertTrue(same_random(export.dir / f"f{i}", 4096, seed=i))
            file.close()
        export.umount()


class EveryTool(NetworkTest):
    def test_the_name_of_an_export_goes_where_a_device_does(self):
        server = self.serve("file", self.disk)
        export = self.mounted(server)
        fill_random(export.dir / "file", 8 * MIB, seed=1)
        status = export.status()
        self.assertEqual(status["mount"]["source"], server.uri)
        self.assertEqual(status["backend"], "nbd")
        self.assertTrue(status["lease"]["held"])
        self.assertIn(f"process {status['mount']['pid']} (varve mount, at {export.dir})", status["lease"]["holder"])
        self.assertIn("Lease", command(BIN / "varve", "status", server.uri).stdout, "the mount is found by its source")
        refused = command(BIN / "fsck.varve", "-f", "-y", server.uri, check=False)
        self.assertEqual(refused.returncode, 8, refused.stdout + refused.stderr)
        self.assertIn(f"process {status['mount']['pid']}", refused.stdout + refused.stderr)
        command(BIN / "varve", "map", server.uri)
        self.assertIn('TYPE="varve"', command(BIN / "varve", "probe", server.uri).stdout)
        export.umount()
        export.fsck("--data")
        command(BIN / "varve", "dump", "superblock", server.uri)
        command(BIN / "varve", "status", server.uri)
        self.assertIn(f"ID_FS_UUID={status['uuid']}\n", command(BIN / "varve", "probe", "--export", server.uri).stdout)
        command(BIN / "varve", "salvage", server.uri, self.folder / "out")
        self.assertTrue(same_random(self.folder / "out" / "file", 8 * MIB, seed=1))
        export.mount("ro")
        self.assertTrue(same_random(export.dir / "file", 8 * MIB, seed=1))
        export.umount()

    def test_by_qemu(self):
        if not shutil.which("qemu-nbd"):
            self.skipTest("no qemu-nbd")
        disk, socket = self.folder / "disk.qcow2", self.folder / "qemu"
        command("qemu-img", "create", "-q", "-f", "qcow2", disk, "512M")
        server = subprocess.Popen(["qemu-nbd", "-t", "-e", "8", "-f", "qcow2", "-k", str(socket), "--discard=unmap", str(disk)], **QUIET)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        wait_until(socket.exists, "qemu-nbd serves")
        export = Export(f"nbd+unix:///?socket={socket}", self.folder)
        export.mkfs()
        export.mount("discard")
        fill_random(export.dir / "file", 16 * MIB, seed=2)
        export.remount()
        self.assertTrue(same_random(export.dir / "file", 16 * MIB, seed=2))
        export.check_all()


class Death(NetworkTest):
    rounds = int(os.environ.get("VARVE_NBD_DEATHS", 3))

    def test_a_server_that_is_killed_under_load_and_comes_back(self):
        server = self.serve("file", self.disk)
        export = self.mounted(server)
        writers = Writers(export.dir, 4)
        generator = random.Random(SEED)
        for _ in range(self.rounds):
            time.sleep(generator.uniform(0.1, 1.0))
            server.kill()
            time.sleep(generator.uniform(0, 1.0))
            server.start()
            before = sum(writers.promised)
            wait_until(lambda: sum(writers.promised) > before, "it goes on")
        writers.have_lost_nothing(self, export)

    def test_a_path_in_the_name_holds_wherever_the_daemon_is(self):
        server = self.serve("file", self.disk)
        export = Export(server.uri, self.folder)
        export.mkfs()
        command(BIN / "varve", "mount", f"nbd+unix:///?socket={server.socket.name}", export.dir, cwd=self.folder)
        self.assertEqual(export.status()["mount"]["source"], server.uri)
        writers = Writers(export.dir, 2)
        server.kill()
        server.start()
        before = sum(writers.promised)
        wait_until(lambda: sum(writers.promised) > before, "it goes on")
        writers.end()
        command(BIN / "varve", "umount", f"nbd+unix:///?socket={server.socket.name}", cwd=self.folder)
        export.fsck("--data")

    def test_a_mount_that_waits_for_its_server_can_be_interrupted(self):
        server = self.serve("file", self.disk)
        export = Export(server.uri, self.folder)
        export.mkfs()
        stop(server.process.pid)
        for words in ([], ["-f"]):
            waiting = subprocess.Popen([BIN / "varve", "mount", *words, export.path, export.dir, "-o", "patience=600"], **QUIET)
            wait_until(lambda: len(processes_of(export.path)) == (1 if words else 2), "it has begun")
            time.sleep(0.5)  # or it dies before it has anything to give up
            waiting.send_signal(signal.SIGINT)
            wait_until(lambda: waiting.poll() is not None and not processes_of(export.path), "it has ended")
        server.process.send_signal(signal.SIGCONT)
        export.mount()
        export.check_all()

    def test_server_and_daemon_killed_at_once(self):
        server = self.serve("file", self.disk)
        export = self.mounted(server)
        generator = random.Random(SEED + 1)
        for _ in range(self.rounds):
            shutil.rmtree(export.dir / "logs", ignore_errors=True)
            (export.dir / "logs").mkdir()
            writers = Writers(export.dir / "logs", 3)
            time.sleep(generator.uniform(0.2, 1.0))
            server.kill()
            export.kill()
            writers.end()
            server.start()
            export.mount()
            writers.check(self, export.dir / "logs")
        export.check_all()

    def test_one_that_stays_away_is_a_failed_disk(self):
        server = self.serve("file", self.disk)
        export = self.mounted(server, "patience=5")
        writers = Writers(export.dir, 2)
        time.sleep(0.5)  # something is being written when it happens
        server.kill()
        for thread in writers.threads:
            thread.join(HANG)
        self.assertTrue(all(writers.failed), "programs that sync hear of it")
        status = export.status()
        self.assertTrue(status["read_only"])
        self.assertIn("no connection for 5 s", status["read_only_reason"])
        server.start()
        export.umount(check=False)
        export.mount()
        writers.check(self, export.dir)
        export.check_all()

    def test_what_is_said_while_it_is_waited_for(self):
        server = self.serve("file", self.disk)
        export = self.mounted(server)
        say = lambda *words: command(BIN / "varve", *words, export.dir).stdout
        doctor = lambda: "\n".join(f"{one['grade']} {one['subject']}: {one['text']}" for one in
                                  json.loads(command(BIN / "varve", "doctor", "--json", export.dir, check=False).stdout))
        metric = lambda name: re.search(rf"(?m)^varve_device_{name}{{.*}} (\d+)$", say("metrics"))[1]
        self.assertNotIn("not connected", say("status"))
        self.assertEqual((metric("connected"), metric("reconnects_total")), ("1", "0"))
        server.kill()
        wait_until(lambda: not export.status()["connection"]["connected"], "the outage is noticed")
        self.assertRegex(say("status", "-s"), r"(?m)^Device +nbd.*: not connected for \d+ s; waits up to 30 s, then read-only$")
        self.assertEqual(metric("connected"), "0")
        self.assertRegex(doctor(), r"(?m)^broken connection: nbd.*: not connected for \d+ s; waits up to 30 s")
        server.start()
        wait_until(lambda: export.status()["connection"]["connected"], "it is connected again")
        self.assertNotIn("not connected", say("status"))
        self.assertEqual((metric("connected"), metric("reconnects_total")), ("1", "1"))
        self.assertRegex(doctor(), r"(?m)^note connection: lost and made anew 1 time since the mount")
        export.check_all()

    def test_one_that_comes_back_empty_is_not_written_to(self):
        server = self.serve("memory", "512M")
        export = self.mounted(server)
        writers = Writers(export.dir, 2)
        time.sleep(0.5)  # something is being written when it happens
        server.kill()
        server.start()
        for thread in writers.threads:
            thread.join(HANG)
        self.assertTrue(all(writers.failed))
        self.assertIn("removed the lease", export.status()["read_only_reason"])
        export.umount(check=False)


class Filters(NetworkTest):
    def test_slow_and_halting(self):
        server = self.serve("--filter=rate", "--filter=delay", "file", self.disk, "rate=400M", "delay-write=2ms", "delay-read=2ms")
        export = self.mounted(server)
        fill_random(export.dir / "file", 12 * MIB, seed=4)
        export.remount()
        self.assertTrue(same_random(export.dir / "file", 12 * MIB, seed=4))
        export.check_all()

    def test_errors_of_the_server_make_it_read_only(self):
        trigger = self.folder / "trigger"
        server = self.serve("--filter=error", "file", self.disk, "error-pwrite=EIO", "error-pwrite-rate=100%",
                            f"error-pwrite-file={trigger}")
        export = self.mounted(server)
        fill_random(export.dir / "kept", MIB, seed=5)
        trigger.touch()
        with self.assertRaises(OSError):
            fill_random(export.dir / "lost", MIB, seed=6)
        self.assertTrue(export.status()["read_only"])
        self.assertTrue(same_random(export.dir / "kept", MIB, seed=5))
        trigger.unlink()
        export.umount(check=False)
        export.mount()
        self.assertTrue(same_random(export.dir / "kept", MIB, seed=5))
        export.check_all()


class Tls(NetworkTest):
    """Encrypted connections, and those that must not come about."""
    port = 0

    def authority(self, name, host="localhost"):
        """A CA, and a certificate of it for a server; the folder is for both sides."""
        folder = self.folder / name
        folder.mkdir()
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        command("openssl", "req", "-x509", *key, "-keyout", folder / "ca-key.pem", "-out", folder / "ca-cert.pem", "-subj", f"/CN={name}")
        command("openssl", "req", *key, "-keyout", folder / "server-key.pem", "-out", folder / "request", "-subj", f"/CN={host}")
        (folder / "names").write_text(f"subjectAltName=DNS:{host}\n")
        command("openssl", "x509", "-req", "-in", folder / "request", "-CA", folder / "ca-cert.pem", "-CAkey", folder / "ca-key.pem",
                "-CAcreateserial", "-extfile", folder / "names", "-out", folder / "server-cert.pem")
        return folder

    def serve_tcp(self, *words):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        server = Server(*words, "file", self.disk, folder=self.folder, where=["-i", "127.0.0.1", "-p", str(self.port)])
        self.addCleanup(server.kill)
        return server

    def use(self, uri, server):
        export = Export(uri, self.folder)
        export.mkfs()
        export.mount()
        fill_random(export.dir / "file", 8 * MIB, seed=8)
        server.kill()
        server.start()
        fill_random(export.dir / "more", 8 * MIB, seed=9)
        export.remount()
        self.assertTrue(same_random(export.dir / "file", 8 * MIB, seed=8))
        self.assertTrue(same_random(export.dir / "more", 8 * MIB, seed=9))
        export.check_all()

    def refused(self, uri, words):
        done = command(BIN / "varve", "dump", "superblock", uri, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(words, done.stderr)

    def setUp(self):
        super().setUp()
        if "tls=yes" not in command("nbdkit", "--dump-config").stdout:
            self.skipTest("this nbdkit has no TLS")

    def test_certificates(self):
        if not shutil.which("openssl"):
            self.skipTest("no openssl to make certificates with")
        ours, others = self.authority("ours"), self.authority("others")
        server = self.serve_tcp("--tls=require", f"--tls-certificates={ours}")
        uri = f"nbds://localhost:{self.port}/?tls-certificates="
        self.use(uri + str(ours), server)
        self.refused(uri + str(others), "the server's certificate is not from the CA in tls-certificates=")
        self.refused(uri + str(self.folder), "nothing here tells this server from another")
        self.refused(f"nbd://localhost:{self.port}/", "write nbds:// instead of nbd://")
        named = self.authority("named", host="other.example")
        server.kill()
        self.serve_tcp("--tls=require", f"--tls-certificates={named}")
        self.refused(f"nbds://localhost:{self.port}/?tls-certificates={named}", "or is for another host")

    def test_a_key_that_both_know(self):
        if not shutil.which("psktool"):
            self.skipTest("no psktool to make keys with")
        keys, wrong = self.folder / "keys", self.folder / "wrong"
        for file in (keys, wrong):
            command("psktool", "-u", "alice", "-p", file)
        server = self.serve_tcp("--tls=require", f"--tls-psk={keys}")
        self.use(f"nbds://alice@localhost:{self.port}/?tls-psk-file={keys}", server)
        self.refused(f"nbds://alice@localhost:{self.port}/?tls-psk-file={wrong}", "certificates or keys of client and server do not fit")
        self.refused(f"nbds://bob@localhost:{self.port}/?tls-psk-file={keys}", "check the user's name")

    def test_a_server_without(self):
        self.serve_tcp()
        (self.folder / "ca-cert.pem").touch()
        self.refused(f"nbds://localhost:{self.port}/?tls-certificates={self.folder}", "the server has no encryption")


class Elsewhere(NetworkTest):
    """A filesystem that another machine has mounted, as those see it that only read."""

    def setUp(self):
        super().setUp()
        if os.geteuid() or not shutil.which("unshare"):
            self.skipTest("only root can make namespaces")
        self.rose = Machine("rose")
        self.addCleanup(self.rose.end)
        self.server = self.serve("file", self.disk)
        self.export = Export(self.server.uri, self.folder)
        self.export.mkfs()
        self.rose.run(f"{BIN}/varve mount -o log={self.folder}/log {self.server.uri} {self.export.dir}")

    def look(self, program, *words, check=True):
        done = command(BIN / program, *words, check=check)
        return done.stdout + done.stderr

    def test_that_writes(self):
        uri = self.server.uri
        file = self.export.dir / "file"
        write = f"import os, time\nfile = os.open('{file}', os.O_CREAT | os.O_WRONLY)\nwhile True: os.write(file, b'x'); os.fsync(file); time.sleep(0.05)"
        self.rose.run(f'{sys.executable} -c "{write}" > /dev/null 2>&1 &\nuntil [ -s {file} ]; do sleep 0.1; done')
        self.assertRegex(self.look("varve", "status", uri), r"State +in use by process \d+ \(varve mount, at .*\) on rose, since")
        said = json.loads(self.look("varve", "status", "--json", uri))["elsewhere"]
        self.assertTrue(said["lives"])
        self.assertIn("on rose", said["holder"])
        self.assertRegex(self.look("fsck.varve", "-n", "-f", uri, check=False), r"warning: .* on rose, since .*, is using it")
        refused = command(BIN / "varve", "mount", "-o", "ro", uri, self.export.dir, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertRegex(refused.stderr, r"is in use by process \d+ .* on rose, since .*: stop that first")
        said = self.look("varve", "salvage", uri, self.folder / "out", check=False)
        self.assertRegex(said, r"warning: .* on rose, since .*, is using it")
        self.assertRegex(self.look("mkfs.varve", "-n", "-f", uri), r"mkfs would be refused if process \d+ .* on rose, since .*, still")

    def test_that_does_nothing_or_has_ended(self):
        """Which of both cannot be told by reading."""
        uri = self.server.uri
        for has_ended in (False, True):
            if has_ended:
                self.rose.run(f"kill -9 $(pidof varve); umount -l {self.export.dir}")
            idle = r"State +not mounted here.*on rose, since .*: it may still be in use there"
            wait_until(lambda: re.search(idle, self.look("varve", "status", uri)), "the mount there is idle")
            self.assertIsNone(json.loads(self.look("varve", "status", "--json", uri))["elsewhere"]["lives"])
            self.assertRegex(self.look("fsck.varve", "-n", uri), r"warning: .* on rose, since .*, has not given it back")
            self.assertRegex(self.look("varve", "salvage", uri, self.folder / "out"), r"on rose, since .*has not given it back")
            shutil.rmtree(self.folder / "out")
            self.export.mount("ro")
            self.export.umount()

    def test_that_has_given_it_back(self):
        self.rose.run(f"{BIN}/varve umount {self.export.dir}")
        self.assertRegex(self.look("varve", "status", self.server.uri), r"(?m)State +not mounted, clean")
        self.assertNotIn("elsewhere", json.loads(self.look("varve", "status", "--json", self.server.uri)))
        for program, *words in (("fsck.varve", "-n"), ("mkfs.varve", "-n", "-f")):
            self.assertNotIn("rose", self.look(program, *words, self.server.uri))


class Failover(NetworkTest):
    """Two machines, as far as the network goes, and a storage between them."""

    def test_a_database_moves_to_another_machine(self):
        script = ROOT / "examples/failover/failover"
        done = command(script, self.folder, BIN, check=False)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^moved in [\d.]+")  # docs/performance.md says how long; a busy machine takes longer
        print(done.stdout)


main()
