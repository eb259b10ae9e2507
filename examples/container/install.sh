#!/bin/sh
# Installs the wheel beside it, with the pinned requirements, into /opt/crawlspace, and makes the user and the folder of the project.
# The Dockerfile and try.sh run this, as root, in a Debian that has Python with venv. Options of pip: its variables, such as PIP_NO_INDEX.
set -eu
cd "$(dirname "$0")"

useradd --uid 10001 --user-group --no-create-home --home-dir /srv/crawlspace --shell /usr/sbin/nologin crawlspace
install -d -o crawlspace -g crawlspace -m 0750 /srv/crawlspace

python3 -m venv /opt/crawlspace
pip() { /opt/crawlspace/bin/python -m pip --quiet --no-cache-dir --disable-pip-version-check --no-input "$@"; }
pip install --require-hashes --only-binary :all: -r requirements.txt
pip install --no-deps ./crawlspace-*.whl
pip check
