#!/usr/bin/env bash
# Makes develop/toolchain/python/engine/python.wasm.gz from sources: CPython for WASI with its standard library in the
# file. README.md says what it needs and what is in the file.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: tools/cpython/build.sh <directory for the build> [step]" >&2; exit 2; }
build=$(realpath -m "$1")
cd "$(dirname "$0")"
here=$PWD
. ../get.sh
engine=../../develop/toolchain/python/engine

# What is built: source packages of Debian trixie, by their files.
suite=trixie
python=3.13
binaryen=132.0.0

# What marshal writes depends on whether the modules that run come from caches, so none are read.
export SOURCE_DATE_EPOCH=1749600000 LC_ALL=C TZ=UTC PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PYTHONPYCACHEPREFIX=/nonexistent
umask 022

# needs refuses to begin without the packages that it compiles with.
needs() {
  local package missing=
  for package in clang-22 lld-22 libclang-rt-22-dev-wasm32 wasi-libc llvm tcl gcc make patch xz-utils nodejs; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=" $package"
  done
  [ -z "$missing" ] || { say "these Debian packages are missing: apt-get install --no-install-recommends$missing"; exit 1; }
  command -v npm >/dev/null || { say "npm is missing, which installs binaryen: install it"; exit 1; }
}

# fetch downloads the sources with apt. Its lists are in the directory of the build.
fetch() {
  local package
  mkdir -p "$build/packages"
  debian_suites "$build/apt" "$suite" deb-src
  cd "$build/packages"
  apt-get "${apt_options[@]}" source --download-only --only-source "python$python"
  for package in zlib bzip2 sqlite3; do apt-get "${apt_options[@]}" source --download-only --only-source --tar-only $package; done
  sha256sum --quiet --check "$here/sources.sha256" || { say "Debian has other sources than sources.sha256: check them, and change that file"; exit 1; }
  cd "$here"
}

# unpack unpacks them, and applies Debian's fixes to CPython: its *.patch are upstream's own, and its *.diff fit Python
# to Debian. Then come the patches here.
unpack() {
  local archive name
  mkdir -p "$build/src"
  cd "$build/src"
  for archive in python3.13_*.orig.tar.xz:python zlib_*.orig.tar.gz:zlib bzip2_*.orig.tar.gz:bzip2 sqlite3_*.orig.tar.xz:sqlite; do
    name=${archive##*:}
    mkdir -p "$name"
    tar -xf "$build"/packages/${archive%:*} -C "$name" --strip-components=1
  done
  tar -xf "$build"/packages/python3.13_*.debian.tar.xz
  grep '^[^#].*\.patch$' debian/patches/series | while read -r name; do
    patch -d python -p1 -s -N --no-backup-if-mismatch < "debian/patches/$name"
  done
  for name in "$here"/patches/*.patch; do patch -d python -p1 -s -N --no-backup-if-mismatch < "$name"; done
  cd "$here"
}

# native builds the same CPython for this machine: it runs the scripts of the build, and compiles the library.
native() {
  mkdir -p "$build/native"
  cd "$build/native"
  ../src/python/configure --disable-test-modules --without-ensurepip CFLAGS=-O1 > configure.log
  make -j"$(nproc)" python pybuilddir.txt > make.log
  cd "$here"
}

# The stack has what 500 nested calls from C to Python need, after which CPython raises RecursionError.
stack=8388608
features=(--mvp-features --enable-bulk-memory --enable-bulk-memory-opt --enable-sign-ext --enable-nontrapping-float-to-int --enable-mutable-globals
  --enable-multivalue --enable-reference-types)

# The compiler. It must not find a wasm-opt, which it would run after each link.
target=(--target=wasm32-wasi --no-wasm-opt -Wno-deprecated -Qunused-arguments)
flags="-O3 -g0 -ffile-prefix-map=$build=. -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_GETPID -D_WASI_EMULATED_PROCESS_CLOCKS"

# compile compiles a source to an object of the libraries. The paths are relative, so none of this machine is in the object.
compile() { (cd "$build/lib" && clang-22 "${target[@]}" $flags "${@:2}" -c "$1" -o "$(basename "${1%.*}").o"); }

libraries() {
  local one
  mkdir -p "$build/lib" "$build/sqlite"
  for one in adler32 crc32 deflate infback inffast inflate inftrees trees zutil compress uncompr; do compile "../src/zlib/$one.c" -w; done
  (cd "$build/lib" && llvm-ar rcsD libz.a adler32.o crc32.o deflate.o inf*.o trees.o zutil.o compress.o uncompr.o)
  for one in blocksort huffman crctable randtable compress decompress bzlib; do compile "../src/bzip2/$one.c" -w; done
  (cd "$build/lib" && llvm-ar rcsD libbz2.a blocksort.o huffman.o crctable.o randtable.o compress.o decompress.o bzlib.o)
  cd "$build/sqlite"
  ../src/sqlite/configure --disable-readline --disable-tcl > configure.log
  make sqlite3.c > make.log
  cd "$here"
  compile ../sqlite/sqlite3.c -w -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_WAL -DSQLITE_ENABLE_FTS3 \
    -DSQLITE_ENABLE_FTS4 -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_GEOPOLY -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_MATH_FUNCTIONS \
    -DSQLITE_ENABLE_PREUPDATE_HOOK -DSQLITE_ENABLE_SESSION
  (cd "$build/lib" && llvm-ar rcsD libsqlite3.a sqlite3.o)
}

# configure and make CPython for WASI, with all its modules in the program.
wasi() {
  mkdir -p "$build/wasi"
  cd "$build/wasi"
  CONFIG_SITE=../src/python/Tools/wasm/config.site-wasm32-wasi PKG_CONFIG=false \
    CC="clang-22 ${target[*]}" CPP="clang-22 ${target[*]} -E" AR=llvm-ar ARFLAGS=rcsD RANLIB=llvm-ranlib CFLAGS="-g0 -ffile-prefix-map=$build=. -DSIZEOF_PTHREAD_T=4" \
    OPT="-DNDEBUG -O3" LDFLAGS="-L$build/lib" \
    ZLIB_CFLAGS="-I$build/src/zlib" ZLIB_LIBS="-L$build/lib -lz" BZIP2_CFLAGS="-I$build/src/bzip2" BZIP2_LIBS="-L$build/lib -lbz2" \
    LIBSQLITE3_CFLAGS="-I$build/sqlite" LIBSQLITE3_LIBS="-L$build/lib -lsqlite3" \
    ../src/python/configure --prefix=/usr/local --host=wasm32-wasi --build="$(gcc -dumpmachine)" --with-build-python="$build/native/python" \
    --with-pymalloc --without-mimalloc --without-computed-gotos --disable-test-modules --without-ensurepip --disable-ipv6 > configure.log
  make -j"$(nproc)" python.wasm > make.log
  cd "$here"
}

# The functions of wasi-libc that files.c stands before.
wrapped=(fd_advise fd_close fd_fdstat_get fd_fdstat_set_flags fd_filestat_get fd_pread fd_read fd_readdir fd_seek fd_tell
  path_create_directory path_filestat_get path_filestat_set_times path_link path_open path_readlink path_remove_directory
  path_rename path_symlink path_unlink_file)

# link links the program with files.c, adds the library, and optimizes the result.
link() {
  local out=$build/link data=_sysconfigdata__wasi_wasm32-wasi.py bin=$build/binaryen/node_modules/.bin wraps
  rm -rf "$out"
  mkdir -p "$out"
  make -C "$build/wasi" pybuilddir.txt > "$out/make.log"
  sed "s|$build|/build|g" "$build/wasi/build/lib.wasi-wasm32-$python/$data" > "$out/$data"
  "$build/native/python" library.py "$build/src/python/Lib" "$out/$data" "$out"
  cp files.c "$out"
  (cd "$out" && clang-22 "${target[@]}" $flags -Wall -I. -c files.c -o files.o)
  wraps=$(printf ' -Wl,--wrap=__wasi_%s' "${wrapped[@]}")
  rm -f "$build/wasi/python.wasm"
  make -C "$build/wasi" python.wasm LINKFORSHARED="$out/files.o$wraps" CONFIGURE_LDFLAGS_NODIST="-z stack-size=$stack -Wl,--stack-first" >> "$out/make.log"
  [ -x "$bin/wasm-opt" ] || npm install --prefix "$build/binaryen" --loglevel=error --no-audit --no-fund --no-package-lock "binaryen@$binaryen" >&2
  "$bin/wasm-merge" "$build/wasi/python.wasm" python "$out/library.wasm" library "${features[@]}" -o "$out/merged.wasm"
  "$bin/wasm-opt" "${features[@]}" -O3 --strip-debug --strip-producers --strip-target-features "$out/merged.wasm" -o "$out/python.wasm"
}

# install puts the file into the source tree.
install() {
  local digest
  gzip -9n < "$build/link/python.wasm" > "$engine/python.wasm.gz"
  digest=$(sha256sum < "$build/link/python.wasm" | cut -d' ' -f1)
  sed -i "s/^const engineDigest = .*/const engineDigest = \"$digest\"/" "$engine/../engine.go"
  ls -l "$build/link/python.wasm" "$engine/python.wasm.gz"
  echo "$digest"
}

if [ "${2:-}" ]; then # one step, to work on it
  shift
  "$@"
  exit
fi
needs
fetch
unpack
native
libraries
wasi
link
install
