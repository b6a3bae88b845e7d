// small.wasm: clang++-22 --target=wasm32-wasi -O2 -g1 -nostdlib -ffile-prefix-map=$PWD=/src -Wl,--no-entry -o small.wasm small.cc
namespace shop {
static inline int share(int a, int b) {
  if (b == 77)
    __builtin_trap();
  return a / b;
}
__attribute__((noinline)) int total(int a, int b) { return share(a, b) + 1; }
} // namespace shop

extern "C" __attribute__((export_name("charge"))) int charge(int a, int b) { return shop::total(a, b) + 2; }
