#!/usr/bin/env python3
"""Prints the crates of the workspace in the order of publishing: each after its dependencies."""

import json
import os
import subprocess


def crates():
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--no-deps", "--format-version", "1"]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    names = {package["name"] for package in packages}
    # Dev-dependencies count too: publishing drops only those without a version, and all of ours have one.
    needs = {
        package["name"]: {dependency["name"] for dependency in package["dependencies"]} & names - {package["name"]}
        for package in packages
    }
    done = []
    while needs:
        ready = sorted(name for name, needed in needs.items() if needed <= set(done))
        if not ready:
            raise SystemExit(f"these crates need each other: {', '.join(sorted(needs))}")
        done.append(ready[0])
        del needs[ready[0]]
    return done


if __name__ == "__main__":
    print(*crates(), sep="\n")
