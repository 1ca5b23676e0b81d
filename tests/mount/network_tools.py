"""What tests of mounts over the network share: servers, mounts of what they serve, and programs that know what they were promised."""

import socket
import threading

from harness import *

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def why_unknown(uri):
    """Why this Varve has no such devices; empty where it has."""
    said = command(BIN / "varve", "dump", "superblock", uri, check=False).stderr
    return said.strip() if "built without" in said or "client library" in said else ""


class Server:
    """nbdkit on a local socket, or where its options `where` say; it can be killed and started again."""

    def __init__(self, *words, folder, where=None):
        self.words, self.folder = [str(w) for w in words], Path(folder)
        self.socket, self.ready = self.folder / "socket", self.folder / "ready"
        self.where = where or ["-U", str(self.socket)]
        self.uri = f"nbd+unix:///?socket={self.socket}"
        self.process = None
        self.start()

    def start(self):
        for stale in (self.socket, self.ready):
            stale.unlink(missing_ok=True)
        self.process = subprocess.Popen(["nbdkit", "-f", *self.where, "-P", str(self.ready), *self.words], **QUIET)
        wait_until(lambda: self.ready.exists(), "nbdkit serves")

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None


class Export(Image):
    """An export instead of an image file."""

    def __init__(self, uri, folder):
        super().__init__(folder=folder)
        self.path = uri

    def mkfs(self):
        return command(BIN / "mkfs.varve", "-q", "-f", self.path)

    def kill(self):
        os.kill(self.daemon(), signal.SIGKILL)
        wait_until(lambda: not processes_of(self.path), "the killed daemon is gone")


class Machine:
    """A shell on what Varve takes for another machine: with processes, mounts and a name of its own."""

    def __init__(self, name):
        apart = ["unshare", "-m", "-p", "-f", "-u", "--mount-proc", "--kill-child", "--propagation", "private"]
        self.shell = subprocess.Popen([*apart, "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.run(f"hostname {name}")

    def run(self, script):
        self.shell.stdin.write(f"{script}\necho it ended with $?\n")
        self.shell.stdin.flush()
        said = ""
        for line in self.shell.stdout:
            if line.startswith("it ended with "):
                return said
            said += line
        raise AssertionError(f"the machine has ended: {said}")

    def end(self):
        self.shell.kill()
        self.shell.wait()
        self.shell.stdin.close()
        self.shell.stdout.close()


class Writers:
    """Appends numbered records to some files and syncs each; knows what was promised."""

    def __init__(self, directory, count):
        self.promised, self.failed, self.stop = [0] * count, [None] * count, False
        self.threads = [threading.Thread(target=self.run, args=(directory / f"log{n}", n)) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, path, n):
        generator = random.Random(n)
        try:
            with open(path, "ab", buffering=0) as file:
                while not self.stop:
                    for _ in range(generator.randrange(1, 40)):
                        file.write(b"%015d\n" % (file.tell() // 16))
                    os.fsync(file.fileno())
                    self.promised[n] = file.tell() // 16
        except OSError as error:
            self.failed[n] = error

    def end(self):
        self.stop = True
        for thread in self.threads:
            thread.join()

    def have_lost_nothing(self, test, export):
        """They end; none was told of the outage, and what they were promised is there, also after another mount."""
        self.end()
        test.assertEqual([f for f in self.failed if f], [], "nobody has heard of it")
        test.assertFalse(export.status()["read_only"])
        self.check(test, export.dir)
        export.remount()
        self.check(test, export.dir)
        export.check_all()

    def check(self, test, directory):
        for n, promised in enumerate(self.promised):
            lines = (directory / f"log{n}").read_bytes()
            test.assertGreaterEqual(len(lines) // 16, promised)
            for at in range(0, promised):
                test.assertEqual(lines[at * 16:at * 16 + 15], b"%015d" % at)
