#!/usr/bin/env python3
"""Draws the pictures of docs/tour.md and README.md.

  docs/images/drawings.py [DIRECTORY]     writes the SVG files there, or beside itself

A picture is a list of shapes on a grid of 10 units; the texts below are the source, the SVG files are made from them.
"""

import sys
from pathlib import Path
from xml.sax.saxutils import escape

STYLE = """
  text { font: 13px sans-serif; fill: #222; }
  .small { font-size: 11px; fill: #555; }
  .box { fill: #f4f4f0; stroke: #666; }
  .memory { fill: #fdf3d8; stroke: #b58b20; }
  .disk { fill: #dcebf7; stroke: #3a78a8; }
  .dead { fill: #e8e8e8; stroke: #aaa; stroke-dasharray: 3 2; }
  .bad { fill: #f9dcd8; stroke: #b8402c; }
  .arrow { stroke: #444; fill: none; marker-end: url(#head); }
"""
HEAD = ('<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L10 5 L0 10 z" fill="#444"/></marker></defs>')


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height = width * 10, height * 10
        self.parts = [f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", HEAD,
                      f'<rect width="{self.width}" height="{self.height}" fill="white"/>']

    def box(self, x, y, width, height, text, kind="box"):
        """Lines of text are separated by \\n; the second and later ones are small."""
        self.parts.append(f'<rect class="{kind}" x="{x * 10}" y="{y * 10}" width="{width * 10}" height="{height * 10}" rx="3"/>')
        lines = text.split("\n") if text else []
        top = (y + height / 2) * 10 - (len(lines) - 1) * 7.5 + 4.5
        for i, line in enumerate(lines):
            small = ' class="small"' if i else ""
            self.parts.append(f'<text{small} x="{(x + width / 2) * 10:g}" y="{top + i * 15:g}" text-anchor="middle">{escape(line)}</text>')
        return self

    def arrow(self, *points, text="", at=None):
        path = " L".join(f"{x * 10:g} {y * 10:g}" for x, y in points)
        self.parts.append(f'<path class="arrow" d="M{path}"/>')
        if text:
            x, y = at or ((points[0][0] + points[-1][0]) / 2, (points[0][1] + points[-1][1]) / 2 - 0.6)
            self.note(x, y, text)
        return self

    def note(self, x, y, text, anchor="middle"):
        self.parts.append(f'<text class="small" x="{x * 10:g}" y="{y * 10:g}" text-anchor="{anchor}">{escape(text)}</text>')
        return self

    def svg(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" '
                f'height="{self.height:g}" role="img">')
        return "\n".join([head, *self.parts, "</svg>"]) + "\n"


def device():
    p = Picture(80, 25, "What stands on the device")
    p.box(0.5, 2, 8.5, 5, "superblock\ncopy A", "disk").box(9, 2, 5.5, 5, "lease\n3 blocks", "disk")
    for i, text in enumerate(["segment 0", "segment 1", "segment 2", "segment 3", "segment 4"]):
        p.box(15 + i * 10.4, 2, 10.4, 5, text, "disk")
    p.note(68.2, 5, "…").box(70, 2, 9, 5, "superblock\ncopy B", "disk")
    p.arrow((20, 7), (12, 12)).arrow((30, 7), (32, 12)).arrow((41, 7), (52, 12)).arrow((51, 7), (72, 12))
    p.box(1, 12, 20, 5, "the chain\nchunks, one after the other", "disk")
    p.box(23, 12, 20, 5, "a head of a group\nblocks of files, nothing else", "disk")
    p.box(45, 12, 16, 5, "nodes\nof checkpoints", "disk").box(63, 12, 16, 5, "clean\nmay be written", "dead")
    p.note(40, 21, "A segment is written from its begin to its end. When nothing in it is in use any more, it is clean and can be written again.")
    p.note(40, 23, "What a file holds when it is overwritten stays where it was; the new version goes somewhere else.")
    return p


def write():
    p = Picture(80, 31, "The life of a write and an fsync")
    p.box(1, 2, 13, 5, "program\nwrite(2), fsync(2)").box(19, 2, 13, 5, "kernel\nFUSE")
    p.box(37, 2, 18, 5, "serving thread\nsrc/fuse/worker.cc", "memory").box(60, 2, 19, 5, "operation\nsrc/fs/ops_data.cc", "memory")
    p.arrow((14, 4.5), (19, 4.5)).arrow((32, 4.5), (37, 4.5)).arrow((55, 4.5), (60, 4.5))
    p.box(60, 11, 19, 6, "delta map\nall changes since the\nlast checkpoint", "memory")
    p.arrow((69.5, 7), (69.5, 11), text="stages, inside the gate", at=(61, 9.4))
    p.box(33, 11, 19, 6, "sealer\ncloses the gate, takes what\nis new: one chunk", "memory")
    p.arrow((60, 14), (52, 14), text="fsync", at=(56, 13.2))
    p.box(1, 22, 60, 5, "", "disk").box(2, 22.5, 12, 4, "chunk 41", "disk").box(15, 22.5, 12, 4, "chunk 42", "disk")
    p.box(28, 22.5, 18, 4, "chunk 43\nheader, records, block", "disk")
    p.arrow((42, 17), (38, 22.5), text="one write, durable (RWF_DSYNC)", at=(51.5, 20.2))
    p.note(31, 29.2, "the chain on the device")
    p.arrow((28, 22.5), (7.5, 12), (7.5, 7), text="the answer to fsync", at=(22, 15))
    return p


def checkpoint():
    p = Picture(80, 30, "A checkpoint")
    p.box(1, 2, 20, 5, "active delta map\nnew operations go here", "memory").box(1, 10, 20, 6, "frozen delta map\nwhat the checkpoint takes", "memory")
    p.arrow((11, 7), (11, 10), text="1 swap", at=(14.5, 9))
    p.box(28, 2, 22, 14, "merge, in key order\n2 read only what changes\n.ifile  names, attributes, extents\n.mfile  block → inode\n.ffile  free and used", "memory")
    p.arrow((21, 13), (28, 11))
    p.box(57, 2, 22, 5, "old trees\nstay as they are", "disk").box(57, 10, 22, 6, "new nodes\nwritten behind each other", "disk")
    p.arrow((57, 4.5), (50, 6)).arrow((50, 12), (57, 13), text="3")
    p.box(20, 22, 14, 5, "superblock A", "disk").box(46, 22, 14, 5, "superblock B", "disk")
    p.arrow((60, 16), (30, 22), text="4 flush, then A", at=(38, 18.6)).arrow((34, 24.5), (46, 24.5), text="5 flush, then B", at=(40, 23.8))
    p.note(40, 29, "Until A is written, the old checkpoint counts. From then on the new one does. A crash between leaves one of the two.")
    return p


def clean():
    p = Picture(80, 29, "A round of cleaning")
    for i, (used, name) in enumerate([((1, 0, 0, 1, 0, 0, 0, 1), "victim"), ((0, 0, 1, 0, 0, 0, 0, 0), "victim"),
                                      ((1, 1, 1, 0, 1, 1, 1, 1), "left alone")]):
        for j, live in enumerate(used):
            p.box(2 + i * 26 + j * 3, 3, 3, 4, "", "disk" if live else "dead")
        p.note(14 + i * 26, 9.2, name)
    for j in range(8):
        p.box(28 + j * 3, 16, 3, 4, "", "disk" if j < 4 else "box")
    p.note(40, 22.2, "the head of a group: the blocks that live, one after the other")
    for x in (3.5, 12.5, 24.5, 35.5):
        p.arrow((x, 7), (29.5 + (3.5, 12.5, 24.5, 35.5).index(x) * 3, 16))
    p.note(40, 1.8, "blue: in use · grey: garbage")
    p.note(40, 25, "The policy chooses victims: few blocks to copy, and not likely to become empty by themselves.")
    p.note(40, 27, "The next checkpoint names the new places. Only then the victims are clean.")
    return p


def crash():
    p = Picture(80, 23, "After a crash")
    p.box(1, 3, 14, 6, "superblock\ncheckpoint 7,\nchain goes on at 41", "disk")
    for i, (name, kind) in enumerate([("chunk 41", "disk"), ("chunk 42", "disk"), ("chunk 43", "disk"), ("chunk 44", "bad")]):
        p.box(21 + i * 14, 3, 11, 6, name + ("\nis torn" if kind == "bad" else "\nCRC and LSN fit"), kind)
        p.arrow((15 if i == 0 else 18 + i * 14, 6), (21 + i * 14, 6))
    p.box(21, 15, 39, 5, "delta map\nas it was after chunk 43", "memory")
    for i in range(3):
        p.arrow((26.5 + i * 14, 9), (30 + i * 10, 15), text="replay" if i == 1 else "", at=(44, 12.4))
    p.note(70, 17, "The fsync of chunk 44 was")
    p.note(70, 18.6, "never answered: nothing that")
    p.note(70, 20.2, "was promised is lost.")
    return p


def top():
    """What `varve top` has printed: top.txt, as it looks in a terminal."""
    lines = (Path(__file__).parent / "top.txt").read_text().splitlines()
    p = Picture(max(map(len, lines)) * 0.73 + 3, len(lines) * 1.7 + 3, "varve top on a busy image")
    p.parts = [p.parts[0], "<style>text { font: 12px monospace; fill: #ddd; white-space: pre; }</style>",
               f'<rect width="{p.width:g}" height="{p.height:g}" rx="6" fill="#1e2430"/>']
    for i, line in enumerate(lines):
        if line:
            p.parts.append(f'<text x="15" y="{25 + i * 17}" xml:space="preserve">{escape(line)}</text>')
    return p


PICTURES = {"top": top, "tour-device": device, "tour-write": write, "tour-checkpoint": checkpoint, "tour-cleaning": clean, "tour-crash": crash}

if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for file, draw in PICTURES.items():
        (target / f"{file}.svg").write_text(draw().svg())
