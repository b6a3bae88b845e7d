//! What getrandom needs of the crate wasi, which Debian does not have.
#![no_std]

pub mod wasi_snapshot_preview1 {
    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        pub fn random_get(address: i32, length: i32) -> i32;
    }
}
