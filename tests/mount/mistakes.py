"""Mistakes that people make, and what the tools say to them: the list behind tests/mount/mistakes_test.py and
docs/troubleshooting.md. `python3 tests/mount/mistakes.py` prints the document.

In commands:
- IMG: an image that is not mounted; LIVE: one that is mounted at AT; DEAD: one whose daemon was killed at GONE
- CUT: an image without its end; HOLE: one without superblocks; HALF: one whose copy of the superblock is torn; EXT4: an image of ext4
- TEXT: a text file; FIFO: a pipe; NEW: nothing yet; DIR: an empty directory; HOST: a directory of the host with files"""

from collections import namedtuple

Mistake = namedtuple("Mistake", "section command says advice", defaults=(None,))
# says: a regular expression on what is printed; the status is never 0. advice: for the document; None: the message says it all.

COMMANDS = "Commands and options"
WHAT = "Names of images, devices and directories"
MOUNT = "Mounting"
UMOUNT = "Unmounting"
MAKE = "Making a filesystem"
CHECK = "Checking, repairing, salvaging"
ASK = "Asking and tuning a mount"

NOT_VARVE = "What you have named holds something else. `file` or `blkid` say what. Where there was a Varve filesystem once, " \
            "`fsck.varve --search` looks for what is left of it, and writes nothing."
NOT_MOUNTED = "Mount it first. `varve status` tells whether and where an image is mounted."
GONE = "The daemon has crashed or was killed. What was synced is safe. `varve mount IMAGE DIRECTORY` clears the mount point and recovers; " \
       "`varve umount DIRECTORY` only clears it. The log (`varve status -s` names it) may tell why it ended."

LIST = [
    Mistake(COMMANDS, "varve umont DIR", "unknown command 'umont': did you mean `varve umount`"),
    Mistake(COMMANDS, "varve staus DIR", "did you mean `varve status`"),
    Mistake(COMMANDS, "varve ckeckpoint DIR", "did you mean `varve checkpoint`"),
    Mistake(COMMANDS, "varve catalogue", "unknown command 'catalogue'. There are:\n  mount umount"),
    Mistake(COMMANDS, "varve unmount DIR", "did you mean `varve umount`"),
    Mistake(COMMANDS, "varve mount", "varve mount: source is missing"),
    Mistake(COMMANDS, "varve mount IMG", "varve mount: directory is missing: Where to mount it"),
    Mistake(COMMANDS, "varve mount IMG DIR more", "varve mount: 'more' is one argument too many"),
    Mistake(COMMANDS, "varve umount", "umount: directory is missing"),
    Mistake(COMMANDS, "varve status", "status: path is missing"),
    Mistake(COMMANDS, "varve top", "varve top: directory is missing"),
    Mistake(COMMANDS, "varve map", "varve map: path is missing"),
    Mistake(COMMANDS, "varve dump", "varve dump: what is missing"),
    Mistake(COMMANDS, "varve dump superblok IMG", "superblok not in"),
    Mistake(COMMANDS, "varve dump inode IMG", "which one\\? Give its number"),
    Mistake(COMMANDS, "varve dump inode IMG abc", "which one\\? Give its number"),
    Mistake(COMMANDS, "varve status --jsno IMG", "unknown option --jsno: did you mean --json"),
    Mistake(COMMANDS, "varve clean --dryrun IMG", "unknown option --dryrun: did you mean --dry-run"),
    Mistake(COMMANDS, "varve top -d 0 AT", "--delay: '0': give a number from 0.1 to 3600, as 2"),
    Mistake(COMMANDS, "varve map --by colour IMG", "colour not in"),
    Mistake(COMMANDS, "varve map --png LIVE AT", "is there already, and is no PNG: give another name"),
    Mistake(COMMANDS, "varve report -o IMG AT", "is there already, and is no page: give another name"),
    Mistake(COMMANDS, "varve report -o DIR AT", "is a directory: give a file"),
    Mistake(COMMANDS, "varve image IMG TEXT", "is there already; give the name of a new file"),
    Mistake(COMMANDS, "varve image IMG", "varve image: file is missing"),
    Mistake(COMMANDS, "varve image IMG -", "an image has holes, which a pipe cannot have: name a file"),
    Mistake(COMMANDS, "varve snapshot ls AT", "unknown command 'ls': did you mean `varve snapshot list`"),
    Mistake(COMMANDS, "varve snapshot create", "varve snapshot create: path is missing"),
    Mistake(COMMANDS, "varve fsck IMG", "it is a program of its own, `fsck.varve`"),
    Mistake(COMMANDS, "varve check IMG", "`fsck.varve -n IMAGE` checks a filesystem that is not mounted, `varve scrub DIRECTORY` one that is"),
    Mistake(COMMANDS, "varve repair IMG", "`fsck.varve -y IMAGE` repairs a filesystem that is not mounted"),
    Mistake(COMMANDS, "varve format NEW", "`mkfs.varve` makes a filesystem"),
    Mistake(COMMANDS, "varve scrub --stop --status AT", "excludes"),
    Mistake(COMMANDS, "varve scrub -r fast AT", "fast"),
    Mistake(COMMANDS, "mkfs.varve", "mkfs.varve: target is missing"),
    Mistake(COMMANDS, "mkfs.varve --lable x NEW", "unknown option --lable: did you mean --label"),
    Mistake(COMMANDS, "mkfs.varve a b", "'b' is one argument too many"),
    Mistake(COMMANDS, "mkfs.varve --size +64M NEW", "give the size itself, as 20G, and not how much more or less that is"),
    Mistake(COMMANDS, "fsck.varve", "fsck.varve: target is missing"),
    Mistake(COMMANDS, "fsck.varve --reapir IMG", "unknown option --reapir"),
    Mistake(COMMANDS, "fsck.varve -n -y IMG", "excludes"),
    Mistake(COMMANDS, "fsck.varve --memory lots IMG", "lots"),
    Mistake(WHAT, "varve status NEW", "no such file, directory or device", "Check the name; a USB stick may have another name than last time: use `UUID=`."),
    Mistake(WHAT, "varve status TEXT", "no Varve filesystem is or fits here", NOT_VARVE),
    Mistake(WHAT, "varve map TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve image TEXT NEW", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve dump superblock TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve salvage TEXT DIR", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve label TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve tune TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve top TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve scrub TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve checkpoint TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve trim TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve history TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve metrics TEXT", "no Varve filesystem is or fits here"),
    Mistake(WHAT, "varve top EXT4", "holds an ext2, ext3 or ext4 filesystem, not a Varve filesystem"),
    Mistake(WHAT, "varve checkpoint HOLE", "is not a Varve filesystem"),
    Mistake(WHAT, "varve scrub /dev/null", "a character device: give a block device or an image file"),
    Mistake(WHAT, "varve history FIFO", "a pipe or socket: give a block device or an image file"),
    Mistake(WHAT, "varve probe TEXT", "not a Varve filesystem"),
    Mistake(WHAT, "varve probe HOST", "a directory of .*not a mounted Varve filesystem"),
    Mistake(WHAT, "varve probe EXT4", "not a Varve filesystem"),
    Mistake(WHAT, "varve probe NEW", "No such file"),
    Mistake(WHAT, "varve status EXT4", "[Nn]o Varve|not a Varve"),
    Mistake(WHAT, "varve mount EXT4 DIR", "holds an ext2, ext3 or ext4 filesystem, not a Varve filesystem"),
    Mistake(WHAT, "varve status HOST", "a directory of .*not a mounted Varve filesystem", "Name the directory where the Varve filesystem is mounted, or its image."),
    Mistake(WHAT, "varve checkpoint HOST", "not a mounted Varve filesystem"),
    Mistake(WHAT, "varve mount HOST DIR", "is a directory: give the block device or the image file"),
    Mistake(WHAT, "varve mount FIFO DIR", "a pipe or socket: give a block device or an image file"),
    Mistake(WHAT, "varve mount /dev/null DIR", "a character device: give a block device or an image file"),
    Mistake(WHAT, "varve mount UUID=00000000-0000-0000-0000-00000000abcd DIR", "no mounted image and no block device that you can read has it",
            "An image in a file is only found by its path. A device must be plugged in, and readable by you."),
    Mistake(WHAT, "varve status LABEL=nosuchlabel", "no mounted image and no block device"),
    Mistake(WHAT, "varve mount nbd://localhost:1/ DIR", "no connection: .*check that the server runs|without libnbd"),
    Mistake(WHAT, "varve mount nbds://localhost:1/?tls-certificates=HOST DIR", "nothing here tells this server from another|without libnbd",
            "Without the certificate of a CA, or a key, any machine on the way could say that it is the server. docs/network.md has recipes."),
    Mistake(WHAT, "varve mount rbd:pool DIR", "no image is named: the name of a Ceph image is rbd:pool/image|without librbd"),
    Mistake(WHAT, "varve mount rbd:pool/disk:conf=/nowhere DIR", "check the path behind conf=|librbd",
            "Debian: `apt install librbd1`, where the client library is missing."),
    Mistake(MOUNT, "varve mount NEW DIR", "no such device or file"),
    Mistake(MOUNT, "varve mount TEXT DIR", "no Varve filesystem is or fits here"),
    Mistake(MOUNT, "varve mount IMG NEW", "no such file or directory: make it first", "`mkdir` the mount point."),
    Mistake(MOUNT, "varve mount IMG TEXT", "not a directory"),
    Mistake(MOUNT, "varve mount LIVE DIR", "is mounted at .*unmount it first", "One image has one mount. A bind mount shows it in a second place."),
    Mistake(MOUNT, "varve mount IMG AT", "is mounted there: unmount it first, or take another directory"),
    Mistake(MOUNT, "varve mount CUT DIR", "smaller .*than the filesystem on it", "The end is missing, as after an interrupted copy. Copy it again, or `varve salvage`."),
    Mistake(MOUNT, "varve mount HOLE DIR", "not a Varve filesystem"),
    Mistake(MOUNT, "varve mount META DIR", "an image of metadata, as `varve image` makes them: it has no data of files, and is not mounted",
            "`fsck.varve`, `varve dump` and `varve map` look into it. For the files mount the filesystem that it was made of."),
    Mistake(MOUNT, "varve mount IMG DIR -o colour", "unknown option colour"),
    Mistake(MOUNT, "varve mount IMG DIR -o noatim", "unknown option noatim: did you mean noatime?"),
    Mistake(MOUNT, "varve mount IMG DIR -o log=", "option log: needs a value"),
    Mistake(MOUNT, "varve mount IMG DIR -o strategy=copying:x=1", "'copying:x=1': knows no x"),
    Mistake(MOUNT, "varve mount IMG DIR -o memory=lots", "memory=lots: must be a size, as 256M"),
    Mistake(MOUNT, "varve mount IMG DIR -o memory=1M", "memory"),
    Mistake(MOUNT, "varve mount IMG DIR -o memory=256", "option memory=256: is less than 1 MiB: write it as 256M"),
    Mistake(MOUNT, "varve mount IMG DIR -o protect=24h,1h:1h", "option protect=24h,1h:1h: '1h:1h': each age must be longer than the one before"),
    Mistake(MOUNT, "varve mount IMG DIR -o protect=1w", "option protect=1w: '1w' is no length of time: write it as 30s, 10m, 1h or 2d"),
    Mistake(MOUNT, "varve mount IMG DIR -o policy=greedy+", "option policy=greedy"),
    Mistake(MOUNT, "varve mount IMG DIR -o uid=1000", "unknown option uid=1000: files have owners and modes of their own here"),
    Mistake(MOUNT, "varve mount IMG DIR -o memory", "option memory: needs a value"),
    Mistake(MOUNT, "varve mount IMG DIR -o ro=1", "option ro: takes no value"),
    Mistake(MOUNT, "varve mount IMG DIR -o commit=0", "option commit=0: must be a number of seconds from 1 to 300, without a unit"),
    Mistake(MOUNT, "varve mount IMG DIR -o commit=soon", "option commit=soon: must be a number of seconds from 1 to 300"),
    Mistake(MOUNT, "varve mount IMG DIR -o threads=0", "must be a number from 1 to 64"),
    Mistake(MOUNT, "varve mount IMG DIR -o writeback=maybe", "must be on or off"),
    Mistake(MOUNT, "varve mount IMG DIR -o policy=bestest", "bestest"),
    Mistake(MOUNT, "varve mount IMG DIR -o strategy=bestest", "bestest"),
    Mistake(MOUNT, "varve mount IMG DIR -o placement=bestest", "bestest"),
    Mistake(MOUNT, "varve mount IMG DIR -o plugin=/nowhere.so", "/nowhere.so"),
    Mistake(MOUNT, "varve mount IMG DIR -o log=/nowhere/varve.log", "/nowhere"),
    Mistake(MOUNT, "varve mount IMG DIR -o norecovery", "norecovery"),
    Mistake(MOUNT, "varve mount LIVE DIR -o snapshot=../..", "there is no snapshot '../..': see varve snapshot list"),
    Mistake(MOUNT, "varve mount IMG DIR -o snapshot=a,rw", "snapshot=a: a snapshot is shown read-only: leave out rw"),
    Mistake(UMOUNT, "varve umount DIR", "not a mount point", "Nothing is mounted there; `findmnt -t fuse.varve,fuseblk.varve` lists what is."),
    Mistake(UMOUNT, "varve umount IMG", "not a mount point, and not mounted"),
    Mistake(UMOUNT, "varve umount NEW", "no such file, directory or device"),
    Mistake(UMOUNT, "varve umount /proc", "not a Varve filesystem"),
    Mistake(UMOUNT, "varve umount HOST", "not a mount point"),
    Mistake(MAKE, "mkfs.varve NEW", "does not exist: to create an image, give --size"),
    Mistake(MAKE, "mkfs.varve --size 20 NEW", "too small: Varve needs at least 8M"),
    Mistake(MAKE, "mkfs.varve --size 1M NEW", "too small: Varve needs at least 8M"),
    Mistake(MAKE, "mkfs.varve --size 1E -n NEW", "too big: at most 64T"),
    Mistake(MAKE, "mkfs.varve --size 1000T -n NEW", "too big: at most 64T"),
    Mistake(MAKE, "mkfs.varve --size ten NEW", "ten"),
    Mistake(MAKE, "mkfs.varve --size -5M NEW", "--size"),
    Mistake(MAKE, "mkfs.varve --size 1,5G NEW", "--size: '1,5G' is no size: write a whole number with K, M, G or T, as 1536M"),
    Mistake(MAKE, "mkfs.varve --size 1e9 NEW", "--size: '1e9' is no size"),
    Mistake(MAKE, "mkfs.varve --size 9999999999999T NEW", "--size: '9999999999999T' is too big: no size is beyond 16E"),
    Mistake(MAKE, "mkfs.varve --streams 0 --size 64M NEW", "--streams: '0': give a number from 1 to 1000, as 5"),
    Mistake(MAKE, "mkfs.varve --size 50% NEW", "--size: '50%' is no size"),
    Mistake(MAKE, "mkfs.varve --size 0 NEW", "--size: '0' is no size: give more than 0, as 20G"),
    Mistake(MAKE, "mkfs.varve TEXT", "no Varve filesystem is or fits here"),
    Mistake(MAKE, "mkfs.varve HOST", "is a directory"),
    Mistake(MAKE, "mkfs.varve /dev/null", "a character device"),
    Mistake(MAKE, "mkfs.varve IMG", "holds the Varve filesystem.*use -f to overwrite it", "`-f` destroys what is there. `varve status IMAGE` shows what it is."),
    Mistake(MAKE, "mkfs.varve EXT4", "holds an ext2, ext3 or ext4 filesystem: use -f"),
    Mistake(MAKE, "mkfs.varve -f LIVE", "is mounted at"),
    Mistake(MAKE, "mkfs.varve --probe NEW", "does not exist: to create an image, give --size"),
    Mistake(MAKE, "mkfs.varve --probe IMG", "holds the Varve filesystem.*use -f to overwrite it", "Timed writes destroy what is there, too: back up first, then `-f`."),
    Mistake(MAKE, "mkfs.varve --probe -f LIVE", "is mounted at"),
    Mistake(MAKE, "mkfs.varve --probe --size 64M -U 123 NEW", "not a UUID"),
    Mistake(MAKE, "mkfs.varve --size 64M -U 123 NEW", "not a UUID"),
    Mistake(MAKE, "mkfs.varve --size 64M -L " + 64 * "x" + " NEW", "at most 63 are possible"),
    Mistake(MAKE, "mkfs.varve --size 64M --segment-size 5000 NEW", "segment size must be a power of two"),
    Mistake(MAKE, "mkfs.varve --size 64M --segment-size 3M NEW", "segment size must be a power of two"),
    Mistake(MAKE, "mkfs.varve --size 64M --segment-size 64M NEW", "16|segments"),
    Mistake(MAKE, "mkfs.varve --size 64M --erase-unit 5 NEW", "not a multiple"),
    Mistake(MAKE, "mkfs.varve --size 64M /nowhere/x.img", "cannot create"),
    Mistake(CHECK, "fsck.varve TEXT", "no Varve filesystem is or fits here"),
    Mistake(CHECK, "fsck.varve NEW", "no such device or file"),
    Mistake(CHECK, "fsck.varve EXT4", "not a Varve filesystem"),
    Mistake(CHECK, "fsck.varve -y LIVE", "is mounted at", "A check needs the filesystem unmounted; `varve scrub` verifies one that is in use."),
    Mistake(CHECK, "fsck.varve HOST", "is a directory"),
    Mistake(CHECK, "fsck.varve CUT", "(?i)smaller|missing|cut off|end"),
    Mistake(CHECK, "fsck.varve -y --undo TEXT IMG", "exists"),
    Mistake(CHECK, "fsck.varve --undo-apply TEXT IMG", "TEXT|undo"),
    Mistake(CHECK, "fsck.varve --memory 1M IMG", "takes|needs|MiB"),
    Mistake(CHECK, "fsck.varve --memory 100 IMG", "--memory: 100 bytes: too little for any check: write it as 512M"),
    Mistake(CHECK, "fsck.varve --bogus", "unknown option --bogus"),
    Mistake(CHECK, "varve salvage IMG HOST", "empty", "Salvage never writes among other files: give a new directory."),
    Mistake(CHECK, "varve salvage NEW DIR", "no such device or file"),
    Mistake(CHECK, "varve dump superblock LIVE", "is mounted at"),
    Mistake(CHECK, "varve dump node IMG 99999999", "the device has"),
    Mistake(ASK, "varve scrub IMG", "not mounted, and only a mounted filesystem can do this: varve mount", NOT_MOUNTED),
    Mistake(ASK, "varve top IMG", "not mounted, and only a mounted filesystem can do this"),
    Mistake(ASK, "varve history IMG", "not mounted, and only a mounted filesystem can do this"),
    Mistake(ASK, "varve tune IMG policy=greedy", "not mounted, and only a mounted filesystem can do this"),
    Mistake(ASK, "varve checkpoint IMG", "not mounted, and only a mounted filesystem can do this"),
    Mistake(ASK, "varve trim IMG", "not mounted, and only a mounted filesystem can do this"),
    Mistake(ASK, "varve metrics IMG", "not mounted, and only a mounted filesystem can do this"),
    Mistake(ASK, "varve metrics", "name mounts, or --all"),
    Mistake(ASK, "varve checkpoint GONE", "its daemon is gone .*varve mount .*varve umount", GONE),
    Mistake(ASK, "varve top DEAD", "its daemon is gone"),
    Mistake(ASK, "varve map GONE", "its daemon is gone"),
    Mistake(ASK, "varve label GONE photos", "its daemon is gone"),
    Mistake(ASK, "varve tune AT policy", "must be setting=value, as policy=greedy"),
    Mistake(ASK, "varve tune AT policy=bestest", "bestest"),
    Mistake(ASK, "varve tune AT colour=red", "there is no setting 'colour'"),
    Mistake(ASK, "varve tune AT history=-1", "must be a number of rounds"),
    Mistake(ASK, "varve label AT " + 64 * "x", "at most 63 are possible"),
    Mistake(ASK, "varve uuid IMG 123", "not a UUID"),
    Mistake(ASK, "varve snapshot", "A subcommand is required"),
    Mistake(ASK, "varve snapshot create", "path is missing"),
    Mistake(ASK, "varve snapshot create AT a/b", "neither '/' nor ',' nor control characters"),
    Mistake(ASK, "varve snapshot create AT ..", "'..' is no name for a snapshot"),
    Mistake(ASK, "varve snapshot create AT auto-mine", "'auto-mine': names that begin with 'auto-' are of snapshots that are made by themselves"),
    Mistake(ASK, "varve snapshot delete AT none", "there is no snapshot 'none'"),
    Mistake(ASK, "varve snapshot delete AT", "names is missing"),
    Mistake(ASK, "varve snapshot keep AT", "which is missing"),
    Mistake(ASK, "varve snapshot keep AT 10m", "there are no automatic snapshots: `varve tune DIR protect=1h` makes them"),
    Mistake(ASK, "varve tune AT protect=soon", "protect=soon: 'soon' is no length of time: write it as 30s, 10m, 1h or 2d"),
    Mistake(ASK, "varve tune AT protect=1h,24h", "protect=1h,24h: '24h': only the first rule goes without a spacing, as in 1h,24h:1h,30d:1d"),
    Mistake(ASK, "varve tune AT protect=1h,30d:1s", "'30d:1s': that makes more than 2500 snapshots: take a longer spacing"),
    Mistake(ASK, "varve tune AT protect_every=0", "protect_every must be a second or more"),
    Mistake(ASK, "varve snapshot rename AT none other", "there is no snapshot 'none'"),
    Mistake(ASK, "varve send AT", "either name a snapshot, with --from if need be, or give --resume"),
    Mistake(ASK, "varve send AT none", "there is no snapshot 'none'"),
    Mistake(ASK, "varve send --resume 123 AT", "this is no token of varve receive --resume-token"),
    Mistake(ASK, "varve receive TEXT", "is no directory: a stream becomes files in one"),
    Mistake(ASK, "varve receive --resume-token AT", "no receive was interrupted here"),
    Mistake(ASK, "varve receive --last AT", "no snapshot was received here as a whole"),
    Mistake(ASK, "varve restore AT", "--from is required"),
    Mistake(ASK, "varve restore AT --from none", "there is no snapshot 'none'"),
    Mistake(ASK, "varve restore HOST --from none", "not a mounted Varve filesystem"),
    Mistake(ASK, "varve snapshot show AT none", "there is no snapshot 'none'"),
    Mistake(ASK, "varve snapshot list GONE", "its daemon is gone"),
    Mistake(ASK, "varve snapshot list HOST", "a directory of .*not a mounted Varve filesystem"),
    Mistake(ASK, "varve snapshot list EXT4", "not a Varve filesystem"),
    Mistake(ASK, "varve resize", "varve resize: path is missing"),
    Mistake(ASK, "varve scrub -r 10MX AT", "--rate: '10MX' is no rate: write bytes per second as a whole number with K, M or G, as 10M"),
    Mistake(ASK, "varve snapshot create AT -x", "unknown option -x: if it is a name, write -- before it"),
    Mistake(ASK, "varve snapshot delete AT -x", "unknown option -x: if it is a name, write -- before it"),
    Mistake(ASK, "varve label AT -x", "unknown option -x: if it is a name, write -- before it"),
    Mistake(ASK, "varve resize AT 0", "'0' is no size: give more than 0, as 20G"),
    Mistake(ASK, "varve clean --free 0 AT", "'0' is no size: give more than 0, as 20G"),
    Mistake(ASK, "varve clean --move 0K AT", "'0K' is no size: give more than 0, as 20G"),
    Mistake(ASK, "varve resize AT +20M", "give the size itself, as 20G, and not how much more or less that is"),
    Mistake(ASK, "varve resize AT 1.5G", "is no size: write a whole number with K, M, G or T, as 1536M"),
    Mistake(ASK, "varve resize IMG 1M", "too small: Varve needs at least 8M"),
    Mistake(ASK, "varve resize AT 4000000", "too small: Varve needs at least 8M"),
    Mistake(ASK, "varve resize IMG 65T", "too big: at most 64T"),
    Mistake(ASK, "varve resize AT -5", "-5"),
    Mistake(ASK, "varve resize AT large", "large"),
    Mistake(ASK, "varve resize -n AT 20M", "excludes"),
    Mistake(ASK, "varve resize --cancel IMG", "is not mounted: only what a mount does can be cancelled"),
    Mistake(ASK, "varve resize GONE 80M", "its daemon is gone"),
    Mistake(ASK, "varve resize NEW 80M", "no such file, directory or device|No such file"),
    Mistake(ASK, "varve resize HOST 80M", "a directory of .*not a mounted Varve filesystem"),
    Mistake(ASK, "varve resize EXT4 80M", "not a Varve filesystem"),
    Mistake(ASK, "varve clean -s best IMG", "best"),
    Mistake(ASK, "varve clean -s defragmenting HOST AT", "not in the filesystem at"),
    Mistake(ASK, "varve map --png /nowhere/x.png IMG", "cannot be written"),
]

HEAD = """# When something does not work

Begin with `varve doctor IMAGE`, or `varve doctor DIRECTORY`: it looks at the kernel, `/dev/fuse`, limits, the disk and the mount, and says what
to do. `varve status -s` shows the state in a few lines, and where the daemon's messages are.

## Questions without a message

**"Transport endpoint is not connected", "Software caused connection abort".** The daemon of the mount is gone. `varve mount IMAGE DIRECTORY` clears this and recovers. Everything
before the last completed fsync is there.

**`df` shows some percent used on an empty filesystem.** The cleaner needs room to work in, and a block costs its metadata, too. That is kept
back, as other filesystems keep back their tables.

**Another user sees nothing, or "Permission denied", in my mount.** A user's mount is for that user alone. `-o allow_other` opens it, which
needs a line `user_allow_other` in `/etc/fuse.conf`.

**The mount is read-only because "the tables of snapshots are damaged".** The filesystem in use is whole, and nothing was written. Unmount it.
`fsck.varve -n` says what of the snapshots is lost, and `fsck.varve -y` makes the image writable again.

**The mount has become read-only.** A write or flush failed, or another program has taken the image. `varve status -s` says which. If the host's
disk is full, see below. Else unmount it, look at the disk (`dmesg`, `smartctl`), then `fsck.varve -n`.

**A file gives "Input/output error".** The device could not read it, or had something else there than what was written. The log names the inode
and the block, `find DIRECTORY -inum NUMBER` the file, and `varve scrub` all of them. `varve doctor DIRECTORY` says when it is the medium that fails:
then copy what matters now, and replace it.

**The host's disk is full.** The image cannot grow. Programs that write or sync get "No space left on device", `varve status -s` has a line "Host". Make
room on the host, or give back to it what is free inside: `varve trim DIRECTORY`. The mount goes on by itself within five seconds, and nothing is lost
that was not refused. Unmounted while the host is full, it waits ten seconds for room, and then ends with what was synced. Where it is read-only for want
of room (it was mounted then, or a flush failed), make room, unmount, mount again: there is nothing for `fsck.varve` to repair.

**The image was truncated while it was mounted.** The mount cannot know: it may go on from its memory until it reads what is gone, or ends. `varve status
-s` has a line "Image", and `varve doctor` says by how much it is too short. Copy what can be read, unmount, then `fsck.varve -n`.

**"has not given it back: it may still be in use there".** Another machine had the filesystem mounted. It still has, or it has ended without
unmounting; by reading nobody can tell. `varve mount` asks it, and waits up to twelve seconds for an answer. See [network.md](network.md#one-writer).

**"not connected for 12 s".** The server of the device is away. Programs wait for as long as the line says. Start it again, or look at the network.

**"target is busy".** Something is open or current there: `fuser -vm DIRECTORY` shows what. `varve umount -l` detaches it now, and ends the
daemon when nobody uses it any more.

**In a container.** It needs `--device /dev/fuse` and `--cap-add SYS_ADMIN`. io_uring is usually forbidden there: threads do the I/O.
Where the container has a limit of memory, the daemon takes half of that at most, or what `memory=` says. It follows a limit that changes within ten
seconds and gives back most of what is too much within a minute; to lower a limit far, halve it once in a minute. Files that programs in the container read
and write count for the same limit, but the kernel gives those up by itself. `varve doctor DIRECTORY` looks at the daemon's group, wherever it is asked.

**At boot it is mounted too early.** systemd orders an fstab line after the filesystem that its image lies on. Where the path goes over a bind
mount or an automount, add `x-systemd.requires-mounts-for=`.

## Messages

Each of these is tested. Where the message says it all, nothing follows.
"""


def shown(pattern):
    """A regular expression as text for people."""
    return pattern.split("|")[0].replace("\\?", "?").replace(".*", " … ").replace("(?i)", "").replace("[Nn]", "n").replace("\n", " ").replace("`", "'")


def document():
    text = HEAD
    section = None
    for mistake in LIST:
        if mistake.section != section:
            section = mistake.section
            text += f"\n### {section}\n\n| Command | Says | What to do |\n|---|---|---|\n"
        command = mistake.command if len(mistake.command) < 60 else mistake.command.replace(64 * "x", "xxx…")
        text += f"| `{command}` | {shown(mistake.says).strip()} | {mistake.advice or ''} |\n"
    return text


if __name__ == "__main__":
    print(document(), end="")
