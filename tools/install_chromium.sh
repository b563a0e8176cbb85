#!/bin/sh
# Install Debian's chromium and chromium-driver; without root, unpack them with their libraries into DIRECTORY.
set -eu
directory=$1
if command -v chromium >/dev/null && command -v chromedriver >/dev/null || [ -x "$directory/usr/bin/chromedriver" ]; then
    exit 0
fi
packages="chromium chromium-driver fonts-dejavu-core"
if [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $packages >/dev/null
    exit 0
fi
mkdir -p "$directory/archives"
cd "$directory/archives"
needed=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    $packages | grep '^[a-z]' | sort -u)
apt-get download -qq $needed
for archive in *.deb; do
    dpkg-deb --extract "$archive" "$directory"
done
rm -rf "$directory/archives"
