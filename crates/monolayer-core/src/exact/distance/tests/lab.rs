//! Lab, not committed.
use super::super::*;
use crate::model::*;
use crate::number::Format;
use std::collections::BTreeMap;

fn load(dir: &str) -> (Model, String, usize, String, String, String) {
    let text = std::fs::read_to_string(format!("{dir}/dump.txt")).unwrap();
    let mut lines = text.lines();
    let head: Vec<String> = lines.next().unwrap().split(' ').map(str::to_owned).collect();
    let (d, n) = (head[0].parse::<usize>().unwrap(), head[1].parse().unwrap());
    let (p, bound, function) = (lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap());
    let mut t: BTreeMap<String, Numbers> = BTreeMap::new();
    for line in lines {
        let parts: Vec<&str> = line.split(' ').collect();
        let bytes =
            (0..parts[2].len() / 2).map(|i| u8::from_str_radix(&parts[2][2 * i..2 * i + 2], 16).unwrap()).collect();
        let shape = parts[1].split(',').map(|x| x.parse().unwrap()).collect();
        t.insert(parts[0].to_owned(), Numbers::Floats(Tensor { shape, format: Format::F64, bytes }));
    }
    let part = |name: &str| {
        let get = |x: &str| t[&format!("{name}.{x}")].clone();
        let Numbers::Floats(b1) = get("b1") else { panic!() };
        FeedForward { hidden: b1.len(), w1: get("w1"), b1: get("b1"), w2: get("w2"), b2: get("b2") }
    };
    let get = |x: &str| t[&format!("layers.0.attention.{x}")].clone();
    let model = Model {
        d,
        dtype: Dtype::Float(Format::F64),
        max_length: None,
        vocabulary: None,
        start: None,
        embedding: None,
        positions: t.get("positions.weight").cloned(),
        pre_feed_forward: Some(part("pre_feed_forward")),
        layers: vec![Layer {
            attention: Some(Attention {
                hard: false,
                heads: head[3].parse().unwrap(),
                size: head[4].parse().unwrap(),
                mask: Mask::None,
                w_q: get("w_q"),
                w_k: get("w_k"),
                w_v: get("w_v"),
                w_o: get("w_o"),
            }),
            feed_forward: Some(part("layers.0.feed_forward")),
        }],
        head: None,
    };
    (model, head[2].clone(), n, p.to_owned(), bound.to_owned(), function.to_owned())
}

/// A crude stand-in: real attention, widened by some ulps.
fn crude(model: &Model, codes: &[Vec<Real>], own: usize) -> Option<Vec<Real>> {
    let exact = Exact::new(model)?;
    let h = exact.attend(model.layers[0].attention.as_ref().unwrap(), codes, &[own], 200)?.swap_remove(0);
    Some(
        h.into_iter()
            .map(|h| {
                let most = h.abs().times(&Real::point(Scaled::new(Big::from(8_i64), -53)), 60);
                h.plus(&most.hull(&most.negated()), 200)
            })
            .collect(),
    )
}

#[test]
#[ignore]
fn lab() {
    for dir in std::env::var("LAB").unwrap().split(' ') {
        let (model, arithmetic, length, p, bound, function) = load(dir);
        let parse = |text: &str| Rational::parse(text, &mut 1_000_000).unwrap();
        let (p, bound) = (parse(&p), parse(&bound));
        let claim = Claim { p: &p, bound: &bound, function: &function, length };
        for floats in [false, true] {
            let now = std::time::Instant::now();
            let attend = |codes: &[Vec<Real>], own: usize| crude(&model, codes, own);
            let (verdict, found) = check(&model, claim, if floats { Some(&attend) } else { None });
            let show = |x: &Scaled| {
                let (m, e) = x.clone().rounded(53, Way::Down).parts_owned();
                m * 2_f64.powi(e as i32)
            };
            let ends = found.ends().map(|(lo, hi)| (show(lo), show(hi)));
            println!(
                "{dir} {function} {arithmetic} floats {floats}: {verdict:?} {ends:?} claimed {bound:?} in {:.3} s",
                now.elapsed().as_secs_f64()
            );
        }
    }
}

impl Scaled {
    fn parts_owned(&self) -> (f64, i64) {
        let (m, e) = self.parts();
        match m {
            Big::Small(m) => (*m as f64, e),
            _ => (f64::NAN, 0),
        }
    }
}
