#!/bin/sh
# Pin the images that the build and Compose pull to the digests that their tags have now.
set -eu
cd "$(dirname "$0")"
for pinned in $(grep -ohE '[a-z/-]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}' Containerfile compose*.yaml | sort -u); do
    tag=${pinned%@*}
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$tag")
    sed -i "s|$pinned|$tag@$digest|" Containerfile compose*.yaml
    echo "$tag@$digest"
done
