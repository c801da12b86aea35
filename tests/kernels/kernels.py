#!/usr/bin/env python3
"""Boots Debian kernels in virtual machines with the static program, busybox and this directory's `init`, and prints what
works.

    tests/kernels/kernels.py --program build/static/pipemark
    tests/kernels/kernels.py --program … --only 5.10 --only 7        only kernels whose version begins with 5.10 or 7
    tests/kernels/kernels.py --program … --flavour rt --cpus 8 --threads 2 --numa 2
    tests/kernels/kernels.py --program build/arm64/pipemark --processor arm64 --flavour 16k

apt downloads the newest kernel of each Debian release to build/kernels. Needs qemu, apt-get and dpkg-deb, but not root.
Uses KVM if a machine boots with it, and emulation otherwise. Each machine's output is written to build/kernels/VERSION.log, and
the table of results to build/kernels/table.md."""

import argparse
import lzma
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build/kernels"
SUITES = ["bullseye", "bookworm", "trixie", "sid"]
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# For each Debian architecture: the qemu program, its machine and CPU options, and the console.
PROCESSORS = {
    "amd64": ("qemu-system-x86_64", [], "max", "ttyS0"),
    "arm64": ("qemu-system-aarch64", ["-machine", "virt"], "max,pauth-impdef=on", "ttyAMA0"),
}
# Emulation by qemu 7.2 sometimes makes a kernel panic while the kernel patches its own code (6.12, in __schedule).
ATTEMPTS = 2
# The modules that the cases need, if the kernel has them as modules.
MODULES = "overlay sunrpc grace lockd nfs_acl fscache netfs nfs nfsv3".split()
HOST = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def apt(architecture, command, *words, **options):
    """Runs an apt tool with a separate configuration, which has only these suites and no installed packages."""
    root = BUILD / "apt" / architecture
    settings = {
        "Dir::Etc::sourcelist": root / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": root / "lists",
        "Dir::State::status": root / "status",
        "Dir::Cache": root / "cache",
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "",
    }
    flags = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    return subprocess.run([command, *flags, *words], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def mirror():
    """DEBIAN_MIRROR, or the mirror that this machine's apt uses for Debian."""
    if "DEBIAN_MIRROR" in os.environ:
        return os.environ["DEBIAN_MIRROR"]
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN) $(LABEL)", "Created-By: Packages"]
    sites = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    site = next((line.split()[0] for line in sites if line.split()[1:] == ["Debian", "Debian"]), None)
    return site or sys.exit(
        "kernels.py: apt here knows no mirror of Debian: name one in DEBIAN_MIRROR, and run apt-get update"
    )


def update(architecture, suites):
    root = BUILD / "apt" / architecture
    for directory in ("lists/partial", "cache/archives/partial", "debs"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    site = mirror()
    sources = [f"deb [signed-by={KEYRING}] {site} {suite} main\n" for suite in suites]
    if (root / "sources.list").exists() and (root / "sources.list").read_text() == "".join(sources):
        return
    (root / "sources.list").write_text("".join(sources))
    try:
        apt(architecture, "apt-get", "-q", "update")
    except subprocess.CalledProcessError:
        (root / "sources.list").unlink()
        raise


def unpacked(architecture, package, version):
    """The unpacked directory of a package."""
    directory = BUILD / "unpacked" / f"{package}_{version}_{architecture}".replace(":", "_")
    if not directory.exists():
        debs = BUILD / "apt" / architecture / "debs"
        apt(architecture, "apt-get", "-q", "download", f"{package}={version}", cwd=debs)
        (deb,) = debs.glob(f"{package}_*.deb")
        part = directory.with_name(f"{directory.name}.part")
        part.parent.mkdir(exist_ok=True)
        subprocess.run(["dpkg-deb", "-x", deb, part], check=True)
        part.rename(directory)
        deb.unlink()
    return directory


def kernels(architecture, suites, flavour):
    """The newest kernel of a flavour in each suite, as suite, version and directories."""
    suffix = {"generic": architecture, "16k": f"{architecture}-16k"}.get(flavour, f"{flavour}-{architecture}")
    meta = f"linux-image-{suffix}"
    found = []
    for line in apt(architecture, "apt-cache", "madison", meta).splitlines():
        version, source = (part.strip() for part in line.split("|")[1:3])
        for suite in suites:
            if f" {suite}/" in source and not any(suite == known[0] for known in found):
                shown = apt(architecture, "apt-cache", "show", f"{meta}={version}")
                image = re.search(r"linux-image-([0-9][^ ,]*)", shown).group(1)
                found.append((suite, image, version))
    for suite, image, version in found:
        names = [f"linux-image-{image}"]
        # Newer releases split the kernel and its modules into further packages.
        depends = apt(architecture, "apt-cache", "depends", f"linux-image-{image}={version}")
        names += [name for name in (f"linux-binary-{image}", f"linux-modules-{image}") if name in depends]
        yield suite, image, [unpacked(architecture, name, version) for name in names]


def one(directories, pattern):
    return next(
        (path for directory in directories for path in sorted(directory.rglob(pattern)) if path.is_file()), None
    )


def initramfs(out, program, busybox, native, server, directories):
    root = out.with_suffix(".root")
    shutil.rmtree(root, ignore_errors=True)
    for directory in ("bin", "lib", "etc"):
        (root / directory).mkdir(parents=True)
    shutil.copy(program, root / "bin/pipemark")
    shutil.copy(busybox, root / "bin/busybox")
    shutil.copy(HERE / "init", root / "init")
    (root / "init").chmod(0o755)
    applets = subprocess.run([native, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    for applet in applets:
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    for name in MODULES:
        module = one(directories, f"{name}.ko*")
        if module:
            content = module.read_bytes()
            (root / f"lib/{name}.ko").write_bytes(lzma.decompress(content) if module.suffix == ".xz" else content)
    if server:
        shutil.copy(server, root / "bin/nfs-server")
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    packed = subprocess.run(
        [native, "cpio", "-o", "-H", "newc", "-R", "0:0"],
        input="\n".join(names).encode(),
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    out.write_bytes(packed.stdout)
    shutil.rmtree(root)


def boot(architecture, kernel, initrd, name, seconds, accel, cpus, threads, numa, words=""):
    """Runs a machine until it ends or exceeds its time limit. Returns the cases that it reported, and whether it finished."""
    qemu, machine, cpu, console = PROCESSORS[architecture]
    log = BUILD / f"{name}.log"
    log.write_text("")
    if accel == "kvm":
        cpu = "host,-arch-capabilities" if architecture == "amd64" else "host"
    machine = [*machine, "-accel", accel, "-cpu", cpu, "-smp", f"cpus={cpus},threads={threads}", "-m", "1024"]
    if numa > 1:
        for node in range(numa):
            own = range(node * cpus // numa, (node + 1) * cpus // numa)
            machine += ["-object", f"memory-backend-ram,id=m{node},size={1024 // numa}M"]
            machine += ["-numa", f"node,nodeid={node},memdev=m{node},cpus={own[0]}-{own[-1]}"]
    command = [qemu, *machine, "-nodefaults", "-nographic", "-no-reboot", "-kernel", kernel, "-initrd", initrd]
    command += ["-serial", f"file:{log}"]
    command += ["-append", f"console={console} panic=-1 quiet {words}"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(f"{log}.qemu", "w")
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    lines = [line.rstrip("\r").split("\t") for line in log.read_text(errors="replace").split("\n")]
    cases = [line[1:] for line in lines if line[0].endswith("@@") and len(line) == 4]
    return cases, ["@@", "end"] in lines


def accelerator(architecture, kernel, initrd):
    """kvm if a machine boots with it within seconds: inside a virtual machine, /dev/kvm may exist and not work."""
    if architecture != HOST or not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    cases, _ = boot(architecture, kernel, initrd, "probe", 20, "kvm", 2, 1, 1)
    return "kvm" if cases else "tcg"


def table(columns):
    """A Markdown table with a row for each case and a column for each kernel."""
    names = list(
        dict.fromkeys(
            name for _, cases, _ in columns for name, _, _ in cases if name not in ("kernel", "missing", "host")
        )
    )
    rows = ["| case | " + " | ".join(column for column, _, _ in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in names:
        states = [next((state for case, state, _ in cases if case == name), "not reached") for _, cases, _ in columns]
        rows.append(f"| {name} | " + " | ".join(states) + " |")
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, required=True, help="a static pipemark")
    parser.add_argument(
        "--only", action="append", default=[], metavar="VERSION", help="only kernels whose version begins with VERSION"
    )
    parser.add_argument("--flavour", action="append", choices=["cloud", "rt", "generic", "16k"], help="default: cloud")
    parser.add_argument("--processor", choices=list(PROCESSORS), default=HOST)
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all")
    parser.add_argument("--accel", choices=["kvm", "tcg"], help="the accelerator (default: kvm if it works)")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="hardware threads per core")
    parser.add_argument("--numa", type=int, default=1, help="nodes of memory")
    parser.add_argument("--seconds", type=int, default=480, help="time limit for each machine (default: 480)")
    parser.add_argument("--quick", action="store_true", help="also run `pipemark run quick`")
    parser.add_argument(
        "--nfs-server", type=pathlib.Path, help="a static cargo-nfs3-server for this processor, for a home on NFS"
    )
    options = parser.parse_args()
    architecture = options.processor
    for tool in (PROCESSORS[architecture][0], "apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            sys.exit(
                f"kernels.py: {tool} is not installed; install it (Debian: qemu-system-x86, qemu-system-arm, apt, dpkg)"
            )
    suites = options.suite or SUITES
    BUILD.mkdir(parents=True, exist_ok=True)
    busyboxes = {}
    for processor in {architecture, HOST}:
        update(processor, suites)
        version = apt(processor, "apt-cache", "madison", "busybox-static").splitlines()[0].split("|")[1].strip()
        busyboxes[processor] = one([unpacked(processor, "busybox-static", version)], "busybox")
    columns, accel, failed = [], options.accel, False
    for flavour in options.flavour or ["cloud"]:
        for suite, image, directories in kernels(architecture, suites, flavour):
            if options.only and not any(image.startswith(version) for version in options.only):
                continue
            kernel, initrd = one(directories, "vmlinuz*"), BUILD / f"{image}.cpio"
            initramfs(
                initrd, options.program, busyboxes[architecture], busyboxes[HOST], options.nfs_server, directories
            )
            accel = accel or accelerator(architecture, kernel, initrd)
            began = time.monotonic()
            words = "limit=60 zeros=100000000" if accel == "kvm" else "limit=120 zeros=24000000"
            words += f" cores={options.cpus // options.threads}" + (" quick" if options.quick else "")
            for _ in range(ATTEMPTS):
                cases, ended = boot(
                    architecture,
                    kernel,
                    initrd,
                    image,
                    options.seconds,
                    accel,
                    options.cpus,
                    options.threads,
                    options.numa,
                    words,
                )
                if ended or any(case[1] == "FAIL" for case in cases):
                    break
                print(f"{image}: the machine ended before its last case; again", flush=True)
            bad = [case for case in cases if case[1] == "FAIL"]
            failed |= bool(bad) or not ended
            print(
                f"{image} ({suite}, {accel}): {sum(case[1] == 'ok' for case in cases)} ok, {len(bad)} failed, "
                f"{sum(case[1] == 'none' for case in cases)} not there, {time.monotonic() - began:.0f} s"
                + ("" if ended else "; did not finish"),
                flush=True,
            )
            for name, _, said in bad:
                print(f"  {name}: {said}", flush=True)
            columns.append((image, cases, ended))
    if not columns:
        sys.exit("kernels.py: no such kernel")
    (BUILD / "table.md").write_text(table(columns))
    print(table(columns), end="")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
