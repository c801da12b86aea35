#!/usr/bin/env python3
"""Writes a bill of materials of a package's program, as CycloneDX 1.5: each crate compiled in, with its licence and the checksum from
Cargo.lock, and other components that crates contain."""

import json
import os
import pathlib
import subprocess
import sys
import tomllib

# Components that aren't crates; their versions are read from their files.
SQLITE = "libsqlite3-sys"
CHARTS = pathlib.Path("crates/pipemark-show/assets/vega")


def component(name, version, purl, licence, sha256=None):
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if licence:
        found["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    if sha256:
        found["hashes"] = [{"alg": "SHA-256", "content": sha256}]
    return found


def main(target, out):
    command = [
        os.environ.get("CARGO", "cargo"),
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        target,
    ]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    checksums = {
        (package["name"], package["version"]): package.get("checksum")
        for package in tomllib.loads(pathlib.Path("Cargo.lock").read_text())["package"]
    }
    (program,) = [identity for identity, package in packages.items() if package["name"] == "pipemark"]

    # Dependencies for tests and build scripts aren't in the program.
    def needs(identity):
        return sorted(
            dependency["pkg"]
            for dependency in nodes[identity]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        )

    def purl(identity):
        return f"pkg:cargo/{packages[identity]['name']}@{packages[identity]['version']}"

    found, left = set(), [program]
    while left:
        identity = left.pop()
        if identity not in found:
            found.add(identity)
            left += needs(identity)
    components = []
    for identity in sorted(found - {program}, key=purl):
        package = packages[identity]
        key = (package["name"], package["version"])
        components.append(component(*key, purl(identity), package["license"], checksums[key]))
    dependencies = [
        {"ref": purl(identity), "dependsOn": [purl(need) for need in needs(identity)]}
        for identity in sorted(found, key=purl)
    ]

    (sqlite,) = [package for identity, package in packages.items() if identity in found and package["name"] == SQLITE]
    header = pathlib.Path(sqlite["manifest_path"]).parent / "sqlite3/sqlite3.h"
    version = next(
        line.split('"')[1] for line in header.read_text().splitlines() if line.startswith("#define SQLITE_VERSION ")
    )
    components.append(component("sqlite", version, f"pkg:generic/sqlite@{version}", "blessing"))
    rows = [line.split("|") for line in (CHARTS / "README.md").read_text().splitlines() if line.startswith("| vega")]
    for name, version in ((row[1].strip(), row[2].strip()) for row in rows):
        components.append(component(name, version, f"pkg:npm/{name}@{version}", "BSD-3-Clause"))

    own = packages[program]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": component(own["name"], own["version"], purl(program), own["license"])
            | {"type": "application"},
            "properties": [{"name": "target", "value": target}],
        },
        "components": components,
        "dependencies": dependencies,
    }
    pathlib.Path(out).write_text(json.dumps(bom, indent=1, sort_keys=True) + "\n")


main(*sys.argv[1:])
