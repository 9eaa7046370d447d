#!/bin/sh
# Installs the .deb in a Debian that has nothing else, and tries it: offscreen and on Xvfb.
#
#   sudo packaging/debootstrap-test.sh dist/tilescope_VERSION_amd64.deb [SUITE] [MIRROR]
#
# Needs root, and debootstrap or mmdebstrap. With KEEP=1 the chroot stays. What the program needs
# beyond its bundle stands in packaging/debian-depends: take a line away and this fails.
set -eu
deb=$1 suite=${2:-bookworm} mirror=${3:-http://deb.debian.org/debian}
root=$(mktemp -d)
chmod 755 "$root"

leave() {
  for place in proc dev/pts dev/shm dev; do umount "$root/$place" 2>/dev/null || true; done
  [ -n "${KEEP-}" ] || rm -rf --one-file-system "$root"
}
trap leave EXIT

if command -v debootstrap >/dev/null; then
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >/dev/null
else
  mmdebstrap --variant=apt "$suite" "$root" "$mirror"
fi
mount -t proc proc "$root/proc"
cp "$deb" "$root/tmp/tilescope.deb"

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }

echo "== installing"
inside DEBIAN_FRONTEND=noninteractive apt-get update -qq
inside DEBIAN_FRONTEND=noninteractive \
  apt-get install -qq -y --no-install-recommends /tmp/tilescope.deb >"$root/tmp/apt.log" 2>&1 ||
  { tail -20 "$root/tmp/apt.log"; exit 1; }
echo "== what it brought: $(inside dpkg-query -W -f '${Package}\n' | wc -l) packages in all"
missing=$(inside sh -c '
  cd /opt/tilescope/_internal
  find . -name "*.so*" -type f | while read -r file; do
    LD_LIBRARY_PATH=/opt/tilescope/_internal ldd "$file" 2>/dev/null |
      sed -n "s|=> not found|(for $file)|p"
  done' | sort -u)
[ -z "$missing" ] || { echo "== missing: $missing"; exit 1; }
echo "== self-test as a user, without a display"
inside useradd --create-home someone
as_user() { chroot --userspec=someone "$root" env -i HOME=/home/someone LC_ALL=C.UTF-8 \
  PATH=/usr/bin:/bin "$@"; }
as_user tilescope --version
as_user tilescope self-test
as_user QT_QPA_PLATFORM=offscreen TILESCOPE_TIME_START=1 tilescope
echo "== self-test on X11"
inside DEBIAN_FRONTEND=noninteractive \
  apt-get install -qq -y --no-install-recommends xvfb xauth >/dev/null 2>&1
as_user QT_QPA_PLATFORM=xcb xvfb-run -a tilescope self-test
echo "== removing"
inside DEBIAN_FRONTEND=noninteractive apt-get purge -qq -y "$(dpkg-deb -f "$deb" Package)" \
  >/dev/null 2>&1
test ! -e "$root/opt/tilescope"
echo "passed"
