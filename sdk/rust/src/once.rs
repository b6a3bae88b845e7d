//! A value that is made when it is first asked for.

use std::cell::UnsafeCell;

/// Holds nothing, and then one value for good. (`std::cell::OnceCell` came with Rust
/// 1.70.)
pub(crate) struct Once<T>(UnsafeCell<Option<T>>);

impl<T> Once<T> {
    pub(crate) const fn new() -> Once<T> {
        Once(UnsafeCell::new(None))
    }

    /// Gives the value, which `make` makes if there is none. If `make` itself asks, its
    /// own value is dropped and the inner one stays.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        // Safety: the cell is not Sync. A reference is only given out to a value that is
        // there, and a value that is there is never replaced; none is alive while the
        // empty place is filled.
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
