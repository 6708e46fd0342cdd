//! A universal approximator written by hand: d = 1, n = 2, four plateaus, for x1*mean(x1).

#[path = "../../../../monolayer-core/src/exact/distance/tests/staircase.rs"]
mod written;

use serde_json::json;

use super::Files;
pub use written::FUNCTION;
use written::{Block, KEY, QUERY, VALUE, blocks};

/// d_2 between the function and the model, by the midpoint rule in the cells.
pub fn distance() -> f64 {
    written::distance(2.0)
}

/// The model.
pub fn staircase() -> Files {
    let [first, second] = blocks();
    let block = |name: &str, Block { units, bias }: &Block| {
        let q = units.len();
        let column = |pick: fn(&(f64, f64, f64)) -> f64| units.iter().map(pick).collect::<Vec<f64>>();
        [
            (format!("{name}.w1"), vec![q, 1], column(|u| u.0)),
            (format!("{name}.b1"), vec![q], column(|u| u.1)),
            (format!("{name}.w2"), vec![1, q], column(|u| u.2)),
            (format!("{name}.b2"), vec![1], vec![*bias]),
        ]
    };
    let weight = |name: &str, x: f64| (format!("layers.0.attention.{name}"), vec![1, 1, 1], vec![x]);
    let mut tensors = vec![weight("w_q", QUERY), weight("w_k", KEY), weight("w_v", KEY), weight("w_o", VALUE)];
    tensors.extend(block("pre_feed_forward", &first));
    tensors.extend(block("layers.0.feed_forward", &second));
    Files {
        config: json!({
            "format": "monolayer/1", "d": 1, "dtype": "f64", "max_length": null, "labels": null,
            "layers": [{"attention": {"kind": "softmax", "heads": 1, "head_size": 1, "mask": "none"}, "hidden": second.units.len()}],
            "pre_feed_forward": {"hidden": first.units.len()}, "source": {}
        }),
        tensors,
        vocabulary: None,
        f32: false,
    }
}
