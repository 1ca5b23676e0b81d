"""What Python has no name for: some system calls, file handles, and places in a listing."""

import ctypes
import fcntl
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
AT_FDCWD = -100
RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def get_flags(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return struct.unpack("l", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8)))[0]
    finally:
        os.close(fd)


def set_flags(path, flags):
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # also of a FIFO, and of no target of a link
    try:
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", flags))
    finally:
        os.close(fd)


def renameat2(source, target, flags):
    checked(libc.renameat2(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), flags))


def fallocate(fd, mode, offset, length):
    checked(libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def handle_of(path):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136)
    mount_id = ctypes.c_int()
    checked(libc.name_to_handle_at(AT_FDCWD, os.fsencode(path), handle, ctypes.byref(mount_id), 0))
    return handle


def open_handle(mounted, handle):
    """Needs root."""
    fd = os.open(mounted, os.O_RDONLY)
    try:
        return checked(libc.open_by_handle_at(fd, handle, os.O_RDONLY))
    finally:
        os.close(fd)


class DirectoryStream:
    """opendir(3) and what goes with it."""

    def __init__(self, path):
        self.stream = ctypes.c_void_p(libc.opendir(os.fsencode(path)))

    def next_name(self):
        entry = libc.readdir(self.stream)
        return os.fsdecode(ctypes.string_at(entry + 19)) if entry else None  # d_name of struct dirent64

    def place(self):
        return libc.telldir(self.stream)

    def go_to(self, place):
        libc.seekdir(self.stream, ctypes.c_long(place))

    def rewind(self):
        libc.rewinddir(self.stream)

    def close(self):
        libc.closedir(self.stream)
