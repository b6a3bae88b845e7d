//! The random state of the standard library.

use std::collections::hash_map::RandomState;
use std::mem::transmute;

/// The regions of memory that the runner fills with new random bytes at the start of every
/// request: how many there are, and of each the address and the length.
#[repr(C)]
pub struct Table {
    count: u32,
    regions: [(*mut u64, u32); 2],
}

static mut TABLE: Table = Table { count: 0, regions: [(std::ptr::null_mut(), 0); 2] };

extern "C" {
    // Symbols of the linker: the first and the end of the memory of statics.
    static mut __global_base: u64;
    static mut __data_end: u64;
}

/// Returns the table, for the runner. The standard library draws the first keys of `HashMap`s once,
/// on targets without WASI without any randomness, and counts them up. The keys are private, so they are
/// found by what they do: a map has the keys that were written there before.
#[export_name = "runner_random"]
pub extern "C" fn find() -> *const Table {
    for _ in 0..1000 {
        draw(); // few other words have the value that the counter has now
    }
    // Safety: a module has one thread. Words are written only where the next keys will be, or are
    // written back.
    unsafe {
        let first = (std::ptr::addr_of_mut!(__global_base) as usize + 7) / 8 * 8;
        let end = std::ptr::addr_of_mut!(__data_end) as usize;
        let table = &mut *std::ptr::addr_of_mut!(TABLE);
        for at in (first..end).step_by(8) {
            let word = at as *mut u64;
            let drawn = draw();
            // The compiler may keep a key that never changes out of memory; then one is left.
            for i in 0..2 {
                let next = word.read_volatile();
                if table.count < 2 && (next == drawn[i] || next == drawn[i].wrapping_add(1)) && decides(word, i) {
                    table.regions[table.count as usize] = (word, 8);
                    table.count += 1;
                    break;
                }
            }
        }
        if table.count == 0 {
            panic!("the keys of HashMap are not found: build the module with another version of Rust, or with a later version of the runner");
        }
        table
    }
}

/// Whether the next key is the word.
unsafe fn decides(word: *mut u64, key: usize) -> bool {
    let before = word.read_volatile();
    let decides = [0x5bd1_e995_0a57_4c11, 0x2545_f491_4f6c_dd1d].iter().all(|&probe| {
        word.write_volatile(probe);
        draw()[key] == probe
    });
    if !decides {
        word.write_volatile(before);
    }
    decides
}

/// The keys of a new map, in any order.
#[inline(never)]
fn draw() -> [u64; 2] {
    // Safety: a RandomState is two keys of 64 bits; another size does not compile.
    unsafe { transmute(RandomState::new()) }
}
