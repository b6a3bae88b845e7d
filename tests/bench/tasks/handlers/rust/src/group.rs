//! Maps and sorting.

use serde::Serialize;
use std::collections::HashMap;

struct Sale {
    customer: String,
    amount: u64,
}

/// Gives the same numbers below the limit in each language.
struct Random(u64);

impl Random {
    fn next(&mut self, limit: u64) -> u64 {
        self.0 = self.0 * 48271 % 2147483647;
        self.0 % limit
    }
}

fn sales() -> Vec<Sale> {
    let mut random = Random(1);
    (0..5000)
        .map(|_| Sale { customer: format!("customer-{}", random.next(1000)), amount: random.next(10000) })
        .collect()
}

#[derive(Clone, Serialize)]
struct Total {
    customer: String,
    count: u64,
    sum: u64,
}

#[derive(Serialize)]
pub struct Totals {
    customers: usize,
    names: Vec<Total>,
    sums: Vec<Total>,
}

pub fn group() -> Totals {
    let mut totals = HashMap::new();
    for Sale { customer, amount } in sales() {
        let (count, sum) = totals.entry(customer).or_insert((0, 0));
        *count += 1;
        *sum += amount;
    }
    let mut all: Vec<Total> =
        totals.into_iter().map(|(customer, (count, sum))| Total { customer, count, sum }).collect();
    all.sort_by(|a, b| a.customer.cmp(&b.customer));
    let names = all[..10].to_vec();
    all.sort_by(|a, b| b.sum.cmp(&a.sum).then_with(|| a.customer.cmp(&b.customer)));
    Totals { customers: all.len(), names, sums: all[..10].to_vec() }
}
