#!/usr/bin/env python3
"""varve receive, what is easily lost on the way: capabilities, and changes of a copy that come from outside of its directory."""

from send_tools import *

CAPABILITY = "security.capability"
CAPABLE = bytes.fromhex("0100000200040000000000000000000000000000")


class Copies(SendTest):
    def capabilities(self, root):
        return {path.name: CAPABILITY in os.listxattr(path) for path in root.iterdir()}

    def test_capabilities_that_were_given_again(self):
        """Writing takes them from a file, and the same ones come back: for a step only the content has changed."""
        changes = {"written": lambda path: command("dd", "if=/dev/zero", f"of={path}", "count=1", "conv=notrunc"),
                   "cut": lambda path: os.truncate(path, 10), "holed": lambda path: command("fallocate", "-p", "-o", 4096, "-l", 4096, path),
                   "given": lambda path: os.chown(path, 5, -1), "shared": lambda path: os.chown(path, -1, 5)}
        for name in changes:
            fill_random(self.dir / name, 20 * KIB, 1, sync=False)
            os.setxattr(self.dir / name, CAPABILITY, CAPABLE)
        self.snapshot("one")
        self.send("one")
        self.receive()
        for name, change in changes.items():
            change(self.dir / name)
            self.assertNotIn(CAPABILITY, os.listxattr(self.dir / name), name)
            os.setxattr(self.dir / name, CAPABILITY, CAPABLE)
        self.snapshot("two")
        self.send("two", "one")
        self.receive()
        self.assertEqual(self.capabilities(self.other.dir), dict.fromkeys(changes, True))
        self.assertEqual(self.tree(self.other.dir), self.tree(self.dir))


main()
