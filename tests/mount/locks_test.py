#!/usr/bin/env python3
"""Locks: those of processes (POSIX), of open files (OFD) and of flock(2). They are the kernel's own on a FUSE mount, so
what is tested is that the negotiation leaves them to it."""

import errno
import fcntl
import struct
import threading

from harness import *

LAYOUT = "hhqqi4x"  # struct flock


def lock(fd, command_, kind, start=0, length=0):
    """fcntl(2) on a range; length 0 is up to the end, whatever that will be. Returns (kind, start, length, pid)."""
    given = struct.pack(LAYOUT, kind, os.SEEK_SET, start, length, 0)
    kind, _, start, length, pid = struct.unpack(LAYOUT, fcntl.fcntl(fd, command_, given))
    return kind, start, length, pid


def in_child(action):
    """The exit status of a process that does it; 99 if it raises."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            status = action()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def refused(*arguments):
    """errno of a lock that does not wait, or 0."""
    try:
        lock(*arguments)
        return 0
    except OSError as error:
        return error.errno


class Locks(MountTest):
    size = "64M"

    def setUp(self):
        super().setUp()
        self.path = self.dir / "f"
        self.path.write_bytes(bytes(1000))
        self.first, self.second = os.open(self.path, os.O_RDWR), os.open(self.path, os.O_RDWR)

    def tearDown(self):
        for fd in (self.first, self.second):
            os.close(fd)
        super().tearDown()

    def test_of_processes(self):
        """Ranges; they belong to the process, which loses them when it closes any descriptor of the file."""
        lock(self.first, fcntl.F_SETLK, fcntl.F_WRLCK, 100, 100)
        lock(self.first, fcntl.F_SETLK, fcntl.F_RDLCK, 300, 0)
        self.assertEqual(refused(self.second, fcntl.F_SETLK, fcntl.F_WRLCK, 100, 100), 0, "our own")
        def other():
            fd = os.open(self.path, os.O_RDWR)
            assert refused(fd, fcntl.F_SETLK, fcntl.F_WRLCK, 199, 1) == errno.EAGAIN
            assert refused(fd, fcntl.F_SETLK, fcntl.F_WRLCK, 0, 100) == 0
            assert refused(fd, fcntl.F_SETLK, fcntl.F_RDLCK, 10**9, 1) == 0
            assert refused(fd, fcntl.F_SETLK, fcntl.F_WRLCK, 10**9, 1) == errno.EAGAIN
            assert lock(fd, fcntl.F_GETLK, fcntl.F_WRLCK, 150, 1) == (fcntl.F_WRLCK, 100, 100, parent)
            return 0
        parent = os.getpid()
        self.assertEqual(in_child(other), 0)
        os.close(os.open(self.path, os.O_RDONLY))
        self.assertEqual(in_child(lambda: refused(self.first, fcntl.F_SETLK, fcntl.F_WRLCK, 0, 0)), 0)

    def test_a_waiting_process_gets_its_turn(self):
        lock(self.first, fcntl.F_SETLK, fcntl.F_WRLCK)
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(tell, b"1")
            lock(self.second, fcntl.F_SETLKW, fcntl.F_WRLCK)
            os._exit(os.pread(self.second, 4, 0) != b"mine")
        os.read(ready, 1)
        os.pwrite(self.first, b"mine", 0)
        lock(self.first, fcntl.F_SETLK, fcntl.F_UNLCK)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_two_that_wait_for_each_other(self):
        lock(self.first, fcntl.F_SETLK, fcntl.F_WRLCK, 0, 1)
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            lock(self.first, fcntl.F_SETLK, fcntl.F_WRLCK, 1, 1)
            os.write(tell, b"1")
            os._exit(refused(self.first, fcntl.F_SETLKW, fcntl.F_WRLCK, 0, 1))
        os.read(ready, 1)
        mine = refused(self.first, fcntl.F_SETLKW, fcntl.F_WRLCK, 1, 1)
        lock(self.first, fcntl.F_SETLK, fcntl.F_UNLCK)
        other = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertEqual(sorted((mine, other)), [0, errno.EDEADLK])

    def test_of_open_files(self):
        """OFD: two descriptors of one process exclude each other, a duplicate does not, a close elsewhere harms nothing."""
        lock(self.first, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, 0, 10)
        self.assertEqual(refused(self.second, fcntl.F_OFD_SETLK, fcntl.F_RDLCK, 5, 1), errno.EAGAIN)
        self.assertEqual(refused(self.second, fcntl.F_SETLK, fcntl.F_RDLCK, 5, 1), errno.EAGAIN)
        self.assertEqual(lock(self.second, fcntl.F_OFD_GETLK, fcntl.F_WRLCK, 0, 0), (fcntl.F_WRLCK, 0, 10, -1))
        same = os.dup(self.first)
        self.assertEqual(refused(same, fcntl.F_OFD_SETLK, fcntl.F_RDLCK, 0, 10), 0)
        os.close(os.open(self.path, os.O_RDONLY))
        self.assertEqual(refused(self.second, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, 0, 10), errno.EAGAIN)
        os.close(self.first)
        self.assertEqual(refused(self.second, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, 0, 10), errno.EAGAIN)
        self.first = same
        lock(same, fcntl.F_OFD_SETLK, fcntl.F_UNLCK)
        self.assertEqual(refused(self.second, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, 0, 10), 0)

    def test_of_flock(self):
        fcntl.flock(self.first, fcntl.LOCK_SH)
        fcntl.flock(self.second, fcntl.LOCK_SH)
        with self.assertRaises(BlockingIOError):
            fcntl.flock(self.second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.assertEqual(refused(self.second, fcntl.F_SETLK, fcntl.F_WRLCK), 0, "another kind of lock")
        fcntl.flock(self.second, fcntl.LOCK_UN)
        got = threading.Event()
        def wait():
            fcntl.flock(self.second, fcntl.LOCK_EX)
            got.set()
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        self.assertFalse(got.is_set())
        fcntl.flock(self.first, fcntl.LOCK_UN)
        thread.join(HANG)
        self.assertTrue(got.is_set())

    def test_a_killed_process_holds_nothing(self):
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            fd = os.open(self.path, os.O_RDWR)
            lock(fd, fcntl.F_SETLK, fcntl.F_WRLCK)
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.write(tell, b"1")
            signal.pause()
        os.read(ready, 1)
        self.assertEqual(refused(self.first, fcntl.F_SETLK, fcntl.F_WRLCK), errno.EAGAIN)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.assertEqual(refused(self.first, fcntl.F_SETLK, fcntl.F_WRLCK), 0)
        fcntl.flock(self.second, fcntl.LOCK_EX | fcntl.LOCK_NB)


if __name__ == "__main__":
    main()
