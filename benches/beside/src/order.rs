//! The value of the codecs' benchmark; the counterpart of `Order.java`.

use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.Order", rename_all = "camelCase")]
pub(crate) struct Order {
    order_id: i64,
    customer: String,
    currency: String,
    total: f64,
    paid: bool,
    lines: Vec<Line>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "redelay.bench.Order$Line")]
struct Line {
    item: String,
    quantity: i32,
    price: f64,
}

impl Order {
    pub(crate) fn example() -> Self {
        let line = |item: &str, quantity, price| Line { item: item.into(), quantity, price };
        Self {
            order_id: 4_711_000_815,
            customer: "Grace Brewster Hopper".into(),
            currency: "EUR".into(),
            total: 61.25,
            paid: false,
            lines: vec![line("coffee, ground, 500 g", 4, 8.75), line("mug, blue", 2, 13.125)],
        }
    }
}
