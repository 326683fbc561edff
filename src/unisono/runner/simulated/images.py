"""What is known of images by their names: which are servers, and which hold nothing but a shell.

A container that says no command runs what its image is for: a web server or a database runs until
it is stopped. An image that is nothing but a shell (busybox, alpine) has the shell's commands and
those of BusyBox; a script that calls another one, or a file that nothing mounted, fails as it would
on a node: 127 for a command that is not found, 2 for a script that is not there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from typing import Any

_SERVER_NAMES = """
nginx httpd apache caddy traefik haproxy envoy redis valkey memcached postgres postgresql mysql
mariadb mongo mongodb rabbitmq etcd consul zookeeper kafka registry minio influxdb prometheus
grafana nats pause
"""
_SERVERS = frozenset(_SERVER_NAMES.split())
_SERVERS_OWN = _SERVERS | {"curl", "openssl", "redis-cli", "redis-server", "psql", "mysqld"}
_BARE = frozenset({"busybox", "alpine"})
_APPLET_NAMES = """
[ [[ . : alias ar arch ash awk base32 base64 basename bc bg break bzip2 cal case cat cd chgrp
chmod chown chroot chrt cksum clear cmp command comm continue cp cpio crc32 cut date dc dd df
diff dirname dmesg dnsdomainname do done du echo ed egrep elif else env esac eval exec exit
expand expr export factor fallocate false fc fg fgrep fi find flock fmt fold for free fsync
ftpget getopt getopts grep groups gunzip gzip halt hash hd head help hexdump history hostid
hostname httpd id if ifconfig in install ionice ip ipcalc jobs kill killall less let link ln
local logger login logname ls lsof lzma md5sum mkdir mkfifo mknod mktemp more mount mountpoint
mv nc netcat netstat nice nl nohup nologin nproc nslookup od paste patch pgrep pidof ping pkill
printenv printf ps pstree pwd read readlink readonly realpath renice reset resize return rev rm
rmdir route run-parts sed seq set setsid sh sha1sum sha256sum sha3sum sha512sum shift shred shuf
sleep sort source split stat strings stty su sum sync sysctl tac tail tar tee telnet test tftp
then time timeout times top touch tr traceroute trap tree true truncate tty type ulimit umask
umount unalias uname unexpand uniq unlink unset unxz unzip until uptime usleep uudecode uuencode
vi wait watch wc wget which while whoami xargs xxd xz yes zcat { } !
"""
_APPLETS = frozenset(_APPLET_NAMES.split())
_SHELL = re.compile(r"(/bin/|/usr/bin/)?(sh|ash)$")
_SPLIT = re.compile(r"(&&|\|\||;|\n)")
_WORD = re.compile(r"[A-Za-z_.][-A-Za-z0-9_.+]*")
_SETS_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*")
_NOT_FOUND, _NO_SUCH_SCRIPT = 127, 2


def base_name(image: str) -> str:
    """Return an image's name without registry, folder, tag and digest.

    >>> base_name("docker.io/library/nginx:1.29-alpine"), base_name("reg:5000/busybox@sha256:00")
    ('nginx', 'busybox')
    """
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def is_server(image: str) -> bool:
    """Say whether an image is a server that runs until it is stopped."""
    return base_name(image) in _SERVERS


def _is_bare(image: str) -> bool:
    """Say whether an image holds a shell and its applets, and a known server at most."""
    name, tag = base_name(image), image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    return name in _BARE or (name in _SERVERS and "alpine" in tag)


def failure_of(container: Mapping[str, Any]) -> int:
    """Return with which code a script must fail in an image without its commands; else 0."""
    line = [
        str(part) for part in (*(container.get("command") or ()), *(container.get("args") or ()))
    ]
    if not _is_bare(str(container.get("image") or "")) or container.get("volumeMounts"):
        return 0
    if len(line) == 3 and _SHELL.fullmatch(line[0]) and line[1] in ("-c", "-ec", "-exc", "-xc"):
        return _last_code(_SPLIT.split(line[2]), stops="e" in line[1])
    return 0


def _last_code(parts: Sequence[str], *, stops: bool) -> int:
    """Return the code of a list of commands, as far as it is known to fail."""
    code, runs = 0, True
    for part in parts:
        text = part.strip()
        if text == "&&":
            runs = runs and not code
        elif text == "||":
            runs = bool(code)
        elif text in (";", ""):
            if stops and code:
                return code
            runs = runs or text == ";" or part == "\n"
        elif runs:
            code = _code_of(text.split())
    return code


def _code_of(words: Sequence[str]) -> int:
    """Return how a command fails if it does for want of its program; else 0."""
    called = [*dropwhile(_SETS_VARIABLE.fullmatch, words)]
    if not called:
        return 0
    if _SHELL.fullmatch(called[0]) and len(called) > 1:
        is_missing = _WORD.fullmatch(called[1]) and called[1].endswith(".sh")
        return _NO_SUCH_SCRIPT if is_missing else 0
    if not _WORD.fullmatch(called[0]) or called[0] in _APPLETS or called[0] in _SERVERS_OWN:
        return 0  # a path, a variable, or what is there
    return _NOT_FOUND
