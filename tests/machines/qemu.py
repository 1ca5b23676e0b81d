"""A guest: qemu with a kernel, an initial RAM disk and a disk, and no network. What it says on its console comes line by line."""

import os
import resource
import select
import shutil
import signal
import subprocess
import time

from debian import NotToBeHad

COMMANDS = {
    "amd64": ("qemu-system-x86_64", "qemu-system-x86", "ttyS0", [], ["-cpu", "max,la57=off"]),
    "arm64": ("qemu-system-aarch64", "qemu-system-arm", "ttyAMA0", ["-machine", "virt,gic-version=3"], ["-cpu", "max,pauth-impdef=on"]),
}
SILENCE = 7200  # seconds without a line, on a busy machine, after which a guest is taken to hang without computing
KVM_PATIENCE = 90  # seconds until a guest under KVM has to say something


def kvm_may_work(architecture):
    """Whether it is worth a try: some machines have a /dev/kvm under which no kernel of Debian's boots."""
    return architecture == {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine) and os.access("/dev/kvm", os.R_OK | os.W_OK)


class Guest:
    """One boot. `limit` is in seconds of CPU time."""

    def __init__(self, architecture, kernel, ram_disk, disk, accelerator, memory="1536M", processors=2, limit=3600, options=""):
        program, package, console, machine, processor = COMMANDS[architecture]
        if not shutil.which(program):
            raise NotToBeHad(f"{program} is not installed (apt-get install {package})")
        emulate = ["-accel", "kvm", "-cpu", "host"] if accelerator == "kvm" else ["-accel", "tcg,thread=multi", *processor]
        self.words = [program, *machine, *emulate, "-m", memory, "-smp", str(processors), "-display", "none", "-monitor", "none", "-serial", "stdio",
                      "-no-reboot", "-nic", "none", "-kernel", kernel, "-initrd", ram_disk,
                      "-append", f"console={console} quiet panic=-1 nokaslr mitigations=off edd=off random.trust_cpu=on {options}",
                      "-drive", f"file={disk},if=virtio,format=raw,discard=unmap", "-device", "virtio-rng-pci"]
        self.limit = limit
        self.accelerator = accelerator
        self.cpu_seconds = 0
        self.end = ""  # why it was ended, if it did not end by itself

    def lines(self):
        """What it says, until it ends."""
        def bounded():
            resource.setrlimit(resource.RLIMIT_CPU, (self.limit, self.limit))

        process = subprocess.Popen([str(w) for w in self.words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   preexec_fn=bounded)
        try:
            yield from self._read(process)
        finally:
            os.kill(process.pid, signal.SIGKILL)  # Popen.kill() might take the status that wait4() wants
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = status
            process.stdout.close()
            self.cpu_seconds = round(used.ru_utime + used.ru_stime)
            if not self.end and self.cpu_seconds >= self.limit - 1:
                self.end = f"its {self.limit} s of CPU time were over"

    def _read(self, process):
        rest, last, spoken = b"", time.monotonic(), False
        while True:
            patience = KVM_PATIENCE if self.accelerator == "kvm" and not spoken else SILENCE
            if not select.select([process.stdout], [], [], 1)[0]:
                if time.monotonic() - last > patience:
                    self.end = f"it said nothing for {patience} s"
                    return
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return
            last, spoken = time.monotonic(), True
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace").rstrip("\r")
