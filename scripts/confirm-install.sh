#!/bin/sh
# Says which Debian or Ubuntu packages are about to be installed, and how to do without. On a terminal it asks; elsewhere
# (CI) it goes on. Exit code 1: they are not wanted. Called by apt-install.sh.
#
#   scripts/confirm-install.sh HOW-TO-AVOID-IT PACKAGE...
set -eu

avoid=$1
shift

# Where there is no apt-get, apt-install.sh says what to do.
command -v apt-get >/dev/null || exit 0

how=
[ "$(id -u)" -eq 0 ] || how=", by sudo"
cat >&2 <<EOF
To be installed with apt-get$how: $*
  No service is started or enabled: /usr/sbin/policy-rc.d, if there is none, forbids it until apt-get has ended.
  To avoid it: $avoid
EOF

[ -t 0 ] || exit 0
printf 'Install now? [y/N] ' >&2
read -r answer || answer=
case $answer in
y | Y | yes | Yes) ;;
*)
    echo "nothing is installed" >&2
    exit 1
    ;;
esac
