//! What is measured of handlers in Rust.

use runner_sdk::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

handler!(hello, |_, _| Ok(ok(json!({ "message": "hello" }))));

#[derive(Serialize, Deserialize)]
struct NewOrder {
    item: String,
    qty: i64,
}

#[derive(Serialize, Deserialize)]
struct Order {
    id: String,
    item: String,
    qty: i64,
}

handler!(order, |ctx, req| {
    let row: Order = insert("Order", req.body::<NewOrder>()?).row(ctx)?;
    Ok(created(row))
});

#[derive(Serialize, Deserialize)]
struct Row {
    id: String,
    item: String,
    qty: i64,
    price: f64,
    #[serde(default)]
    total: f64,
}

handler!(hundred, |_, req| {
    let mut rows: Vec<Row> = req.body()?;
    for row in &mut rows {
        row.total = row.qty as f64 * row.price;
    }
    Ok(ok(rows))
});
