use runner_sdk::*;
use std::collections::hash_map::RandomState as OfStd;
use std::hash::{BuildHasher, Hasher};

handler!(panics, |_, req| {
    let row: Option<u8> = req.query("row").map(|row| row.len() as u8);
    Ok(ok(row.expect("there is a row")))
});

#[inline(never)]
fn deep(n: u64, at: &mut [u8; 64]) -> u64 {
    at[n as usize % 64] = n as u8;
    let mut more = *at;
    if n == u64::MAX {
        0
    } else {
        deep(n + 1, &mut more) + more[0] as u64
    }
}

handler!(recurses, |_, _| Ok(ok(deep(0, &mut [0; 64]))));

handler!(hoards, |_, _| {
    let mut all = Vec::new();
    loop {
        all.push(vec![1u8; 1 << 20]);
        if all.len() > 4096 {
            return Ok(ok(all.len()));
        }
    }
});

handler!(draws, |ctx, _| {
    let mut bytes = [0; 8];
    ctx.random(&mut bytes);
    let of_std = OfStd::new().build_hasher().finish();
    let fresh = RandomState::new().build_hasher().finish();
    Ok(ok((bytes, fresh.to_string(), of_std.to_string())))
});

handler!(tells_the_time, |ctx, _| Ok(ok(format_time(ctx.now()))));
