//! Hash maps with random keys.

use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasher;
#[cfg(target_arch = "wasm32")]
use std::hash::Hasher;

/// Keys for a `HashMap` or a `HashSet` of untrusted input. They are drawn from the host, with 128
/// random bits; those of the standard library have 64 or more.
///
/// ```
/// use runner_sdk::RandomState;
/// use std::collections::HashMap;
///
/// let mut seen: HashMap<String, u32, RandomState> = HashMap::default();
/// seen.insert("tea".into(), 1);
/// ```
#[derive(Clone)]
pub struct RandomState {
    #[cfg(target_arch = "wasm32")]
    key: [u8; 16],
    #[cfg(not(target_arch = "wasm32"))]
    native: std::collections::hash_map::RandomState,
}

impl RandomState {
    /// Draws keys.
    pub fn new() -> RandomState {
        #[cfg(target_arch = "wasm32")]
        {
            let mut key = [0; 16];
            crate::guest::random(&mut key);
            RandomState { key }
        }
        #[cfg(not(target_arch = "wasm32"))]
        RandomState { native: Default::default() }
    }
}

impl Default for RandomState {
    fn default() -> RandomState {
        RandomState::new()
    }
}

impl BuildHasher for RandomState {
    type Hasher = DefaultHasher;

    /// A hasher whose state cannot be known without the key.
    fn build_hasher(&self) -> DefaultHasher {
        #[cfg(target_arch = "wasm32")]
        {
            let mut hasher = DefaultHasher::new();
            hasher.write(&self.key);
            hasher
        }
        #[cfg(not(target_arch = "wasm32"))]
        self.native.build_hasher()
    }
}
