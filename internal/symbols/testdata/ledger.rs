pub mod ledger {
    pub struct Entry {
        pub amounts: Vec<u32>,
    }

    impl Entry {
        #[inline(always)]
        pub fn at(&self, i: usize) -> u32 {
            self.amounts[i]
        }
    }

    #[inline(never)]
    pub fn sum<T: Fn(u32) -> u32>(e: &Entry, last: usize, change: T) -> u32 {
        change(e.at(last)) + 1
    }
}

#[no_mangle]
pub extern "C" fn book(n: u32, last: usize) -> u32 {
    let e = ledger::Entry { amounts: (0..n).collect() };
    ledger::sum(&e, last, |x| x * 3)
}
