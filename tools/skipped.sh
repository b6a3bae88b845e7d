#!/bin/sh
# Says which tests are skipped on this machine for lack of rights: go test shows that only with -v.
set -u
if [ "$(id -u)" != 0 ]; then
	echo "make: not root: tests with small disks, networks of their own and losses of power were skipped"
	exit 0
fi
if [ ! -e "${XDG_CACHE_HOME:-$HOME/.cache}/runner-tests/wine-13/ready" ]; then
	echo "make: tests of the runner for Windows were skipped: make test-windows fetches wine, 1.2 GB"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/disk"
truncate -s 8M "$dir/image"
for kind in tmpfs ext4; do
	case $kind in
	tmpfs) mounted=$(mount -t tmpfs -o size=1M none "$dir/disk" 2>&1) ;;
	ext4) mounted=$(mkfs.ext4 -q "$dir/image" 2>&1 && mount -o loop "$dir/image" "$dir/disk" 2>&1) ;;
	esac
	if [ $? = 0 ]; then
		umount "$dir/disk"
	else
		echo "make: tests with a small disk ($kind) were skipped: cannot mount it: $mounted"
	fi
done
