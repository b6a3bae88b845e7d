//! The handlers in Rust.

mod group;
mod sha;

use runner_sdk::*;

handler!(rustGroup, |_, _| Ok(ok(group::group())));
handler!(rustSha, |_, _| Ok(ok(sha::sha())));
