# Builds the handlers with Nim and clang. On Debian:
# apt-get install nim clang-22 lld-22 wasi-libc libclang-rt-22-dev-wasm32
set -eu
clang=$(command -v clang-22 || command -v clang)
nim c --hints:off --os:linux --cpu:wasm32 --cc:clang --clang.path:"$(dirname "$clang")" \
  --clang.exe:"$(basename "$clang")" --clang.linkerexe:"$(basename "$clang")" \
  --mm:arc --threads:off --noMain -d:release -d:useMalloc -d:noSignalHandler --nimcache:.nimcache \
  --passC:"--target=wasm32-wasi -Wno-deprecated -D_WASI_EMULATED_SIGNAL" \
  --passL:"--target=wasm32-wasi -Wno-deprecated -mexec-model=reactor -lwasi-emulated-signal -Wl,--strip-debug" \
  -o:"$OUT" greetings.nim
