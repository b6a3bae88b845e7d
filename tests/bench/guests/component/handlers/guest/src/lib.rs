//! What is measured of components in Rust.

mod bindings;

use bindings::{insert, json, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;

bindings::handler!("hello", "cabi_post_hello", |_| json(200, &json!({ "message": "hello" })));

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

#[derive(Serialize)]
struct Insert {
    into: &'static str,
    values: NewOrder,
}

#[derive(Deserialize)]
struct Inserted {
    rows: Vec<Order>,
}

bindings::handler!("order", "cabi_post_order", |body| {
    let values: NewOrder = serde_json::from_slice(body).unwrap();
    let args = serde_json::to_string(&Insert { into: "Order", values }).unwrap();
    let inserted: Inserted = serde_json::from_slice(&insert(&args)).unwrap();
    json(201, &inserted.rows[0])
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

bindings::handler!("hundred", "cabi_post_hundred", |body| {
    let mut rows: Vec<Row> = serde_json::from_slice(body).unwrap();
    for row in &mut rows {
        row.total = row.qty as f64 * row.price;
    }
    json(200, &rows)
});
