//! The numbers of a tensor in few characters: a palette where few values occur, places and values where most are zero.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// A row-major tensor as JSON, exact: the shortest of a palette, a list of what is not zero, and plain numbers. `single` says
/// that all its numbers are of single precision.
pub fn pack(shape: &[usize], data: &[f64], single: bool) -> Value {
    let ways = [palette(data), Some(sparse(data, single)), Some(plain(data, single))];
    let mut best = ways.into_iter().flatten().min_by_key(|way| way.to_string().len()).unwrap_or_default();
    best["shape"] = json!(shape);
    best
}

fn encode(bytes: impl IntoIterator<Item = u8>) -> String {
    BASE64_STANDARD.encode(bytes.into_iter().collect::<Vec<u8>>())
}

/// Little-endian, as browsers hold them.
fn numbers(data: impl IntoIterator<Item = f64>, single: bool) -> String {
    let bytes = |x: f64| if single { (x as f32).to_le_bytes().to_vec() } else { x.to_le_bytes().to_vec() };
    encode(data.into_iter().flat_map(bytes))
}

fn plain(data: &[f64], single: bool) -> Value {
    json!({ "kind": "plain", "single": single, "data": numbers(data.iter().copied(), single) })
}

fn sparse(data: &[f64], single: bool) -> Value {
    let filled = || data.iter().enumerate().filter(|&(_, &x)| x != 0.0);
    json!({
        "kind": "sparse",
        "single": single,
        "at": encode(filled().flat_map(|(i, _)| (i as u32).to_le_bytes())),
        "data": numbers(filled().map(|(_, &x)| x), single),
    })
}

/// Up to 256 values, each entry 1, 2, 4 or 8 bits, lowest bits first.
fn palette(data: &[f64]) -> Option<Value> {
    let mut values: Vec<f64> = Vec::new();
    let mut codes = Vec::with_capacity(data.len());
    for x in data {
        let code = values.iter().position(|v| v.to_bits() == x.to_bits()).unwrap_or_else(|| {
            values.push(*x);
            values.len() - 1
        });
        if code > 255 {
            return None;
        }
        codes.push(code as u8);
    }
    let bits = [1, 2, 4, 8].into_iter().find(|&bits| values.len() <= 1 << bits)?;
    let byte = |group: &[u8]| group.iter().enumerate().fold(0, |byte, (i, code)| byte | code << (i * bits));
    Some(json!({ "kind": "palette", "bits": bits, "values": values, "data": encode(codes.chunks(8 / bits).map(byte)) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_is_taken() {
        let signs: Vec<f64> = (0..1000).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let packed = pack(&[10, 100], &signs, true);
        assert_eq!((packed["kind"].as_str(), packed["bits"].as_u64()), (Some("palette"), Some(1)));
        let mut few = vec![0.0; 100_000];
        (0..300).for_each(|i| few[i * 7] = i as f64 + 0.5);
        assert_eq!(pack(&[100_000], &few, true)["kind"], "sparse");
        let many: Vec<f64> = (0..1000).map(|i| f64::from(i).sqrt()).collect();
        let packed = pack(&[1000], &many, false);
        assert_eq!((packed["kind"].as_str(), packed["single"].as_bool()), (Some("plain"), Some(false)));
    }

    #[test]
    fn a_palette_holds_every_entry() {
        let data = [0.5, -1.0, 0.5, 2.0, 0.5];
        let packed = palette(&data).unwrap();
        let bytes = BASE64_STANDARD.decode(packed["data"].as_str().unwrap()).unwrap();
        // Codes 0, 1, 0, 2, then 0: two bits each, the first lowest.
        assert_eq!(bytes, [0b10_00_01_00, 0]);
        assert_eq!(packed["values"], json!([0.5, -1.0, 2.0]));
    }
}
