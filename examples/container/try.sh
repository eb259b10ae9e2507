#!/bin/sh
# Runs what the Dockerfile does without Docker, and crawls: install.sh in a Debian made by debootstrap, then, as the user of the image,
# with everything but /srv/crawlspace and /tmp read-only and without privileges, a project, a crawl of a page on loopback, and a search.
#
#   make dist && sudo sh examples/container/try.sh FOLDER     FOLDER: new or empty, not mounted with nodev or noexec; removed by you
#
# It needs root, debootstrap, and unshare and setpriv (util-linux). Downloads come by the network and the certificates of this machine.
#   MIRROR=http://…       of Debian, instead of the default of debootstrap
#   SUITE=bookworm        the release of Debian
set -eu
: "${1:?name a folder for the file system, as in: sh examples/container/try.sh FOLDER}"
mkdir -p "$1"
root=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
suite=${SUITE:-bookworm}
[ "$(id -u)" = 0 ] || { echo "try.sh needs root, for debootstrap and chroot: run it with sudo" >&2; exit 1; }
ls "$here"/../../dist/crawlspace-*.whl >/dev/null 2>&1 || { echo "there is no wheel in dist: make dist builds it" >&2; exit 1; }

# The Dockerfile: FROM
[ -e "$root/usr/bin/python3" ] || debootstrap --variant=minbase --include=python3-venv "$suite" "$root" ${MIRROR:-}

# COPY
rm -rf "$root/build" "$root/opt/crawlspace" "$root/srv/crawlspace"
mkdir -p "$root/build"
cp "$here/../../requirements.txt" "$here/install.sh" "$here"/../../dist/crawlspace-*.whl "$root/build/"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/build/certificates.pem"

# RUN
chroot "$root" userdel crawlspace 2>/dev/null || true
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin PIP_CERT=/build/certificates.pem sh /build/install.sh
rm -r "$root/build"

# ENV, USER, WORKDIR, VOLUME, and what compose.yaml adds: read_only, tmpfs, cap_drop, no-new-privileges.
cat >"$root/srv/try-crawl.sh" <<'CRAWL'
set -eu
grep -q "^[^ ]* / [^ ]* ro[, ]" /proc/self/mounts || { echo "the root file system is not read-only" >&2; exit 1; }
for place in / /opt/crawlspace /etc /usr; do
  if ( : >"$place/written" ) 2>/dev/null; then echo "$place can be written" >&2; exit 1; fi
done
crawlspace init .
python3 - 8799 <<'PYTHON' &
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<title>Lamps</title><p>All our lamps" if self.path == "/" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *ignored): pass
server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Page)
open("/tmp/serving", "w").close()
server.serve_forever()
PYTHON
server=$!
trap 'kill $server' EXIT
while ! [ -e /tmp/serving ]; do kill -0 $server; done
scrapy startcollection lamps http://127.0.0.1:8799/
scrapy lint lamps
scrapy crawl lamps
scrapy search lamps all | tee /tmp/found
grep -q '^1 hit$' /tmp/found
id
CRAWL
unshare --mount --pid --fork --kill-child sh -eu -c '
  root=$1
  mount --bind "$root" "$root"
  mount --bind "$root/srv/crawlspace" "$root/srv/crawlspace"
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  mount -o remount,bind,ro "$root"
  cd "$root/srv/crawlspace"
  exec chroot "$root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    env -i PATH=/opt/crawlspace/bin:/usr/bin:/bin HOME=/srv/crawlspace sh -c "cd /srv/crawlspace && sh /srv/try-crawl.sh"
' sh "$root"
echo "the steps of the Dockerfile work in $root"
