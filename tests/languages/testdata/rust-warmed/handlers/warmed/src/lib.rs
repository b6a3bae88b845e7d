//! A handler that is warmed, and so has drawn before its first request.

use runner_sdk::{handler, ok, warm, Context, Request, Result};
use std::collections::HashMap;

handler!(drawWarmed, draw);
warm!(draw);

fn draw(_: &Context, _: &Request) -> Result {
    let drawn: HashMap<&str, String> = HashMap::from([("rand::random", rand::random::<u64>().to_string())]);
    Ok(ok(drawn))
}
