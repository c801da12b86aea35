#!/usr/bin/env python3
"""Writes an OCI image layout as a tar file: only /pipemark, for each given processor. The same program gives the same bytes, wherever
and whenever the image is made.

oci.py OUT VERSION LICENCE REPOSITORY ARCHITECTURE=PROGRAM..."""

import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile


def packed(files):
    """A tar file from a dictionary of names and (mode, content), without owners and times."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, (mode, content) in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = mode, len(content)
            if name.endswith("/"):
                entry.type = tarfile.DIRTYPE
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def main(out, version, licence, repository, *programs):
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def blob(content, kind, **more):
        digest = hashlib.sha256(content).hexdigest()
        files[f"blobs/sha256/{digest}"] = content
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": f"sha256:{digest}",
            "size": len(content),
        } | more

    def document(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    labels = {"org.opencontainers.image.title": "pipemark", "org.opencontainers.image.version": version}
    labels["org.opencontainers.image.licenses"] = licence
    if repository:
        labels["org.opencontainers.image.source"] = repository
    manifests = []
    for program in programs:
        architecture, path = program.split("=", 1)
        layer = packed({"pipemark": (0o755, pathlib.Path(path).read_bytes()), "tmp/": (0o1777, b"")})
        config = {
            "architecture": architecture,
            "os": "linux",
            # The history is in /tmp, where a volume can be mounted; otherwise it is lost with the container.
            "config": {
                "Entrypoint": ["/pipemark"],
                "Env": ["PATH=/", "HOME=/tmp"],
                "WorkingDir": "/",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
            "history": [{"comment": "the program alone"}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob(document(config), "config.v1+json"),
            "layers": [blob(gzip.compress(layer, 9, mtime=0), "layer.v1.tar+gzip")],
            "annotations": labels,
        }
        platform = {"architecture": architecture, "os": "linux"}
        manifests.append(blob(document(manifest), "manifest.v1+json", platform=platform, annotations=labels))
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}
    files["index.json"] = document(index)
    pathlib.Path(out).write_bytes(packed({name: (0o644, files[name]) for name in sorted(files)}))


main(*sys.argv[1:])
