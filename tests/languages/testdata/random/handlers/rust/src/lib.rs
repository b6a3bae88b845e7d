//! Draws from each random source of Rust. Warming has drawn from them too.

use runner_sdk::{handler, ok, warm, Context, Request, Result};
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};

handler!(drawRust, draw);
warm!(draw);

fn draw(ctx: &Context, _: &Request) -> Result {
    let map: HashMap<u32, ()> = (0..1000).map(|i| (i, ())).collect();
    let set: HashSet<u32> = (0..1000).collect();
    let mut own = runner_sdk::RandomState::new().build_hasher();
    own.write_u8(1);
    let mut bytes = [0; 8];
    ctx.random(&mut bytes);
    let mut drawn = BTreeMap::new();
    drawn.insert("HashMap", format!("{:?}", map.keys().take(10).collect::<Vec<_>>()));
    drawn.insert("HashSet", format!("{:?}", set.iter().take(10).collect::<Vec<_>>()));
    drawn.insert("first key of a HashMap", format!("{:?}", map.keys().next()));
    drawn.insert("RandomState", RandomState::new().build_hasher().finish().to_string());
    drawn.insert("RandomState of the SDK", own.finish().to_string());
    drawn.insert("ctx.random", format!("{:?}", bytes));
    Ok(ok(drawn))
}
