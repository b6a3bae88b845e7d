//! A value that is made at its first use.

use std::cell::UnsafeCell;

/// Holds no value, and then one that does not change. (`std::cell::OnceCell` came with Rust
/// 1.70.)
pub(crate) struct Once<T>(UnsafeCell<Option<T>>);

impl<T> Once<T> {
    pub(crate) const fn new() -> Once<T> {
        Once(UnsafeCell::new(None))
    }

    /// Returns the value, which `make` makes if there is none. If `make` itself calls `get`,
    /// the inner value stays and its own is dropped.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        // Safety: the cell is not Sync. References exist only to a present value, which is
        // never replaced; none exists while the value is set.
        unsafe {
            if (*self.0.get()).is_none() {
                let value = make();
                if (*self.0.get()).is_none() {
                    *self.0.get() = Some(value);
                }
            }
            match &*self.0.get() {
                Some(value) => value,
                None => unreachable!(),
            }
        }
    }
}
