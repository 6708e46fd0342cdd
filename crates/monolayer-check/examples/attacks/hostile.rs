//! Models whose numbers are chosen against bounds: every one belongs to a class of mistakes that a checker can make.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::certify;
use crate::soundness::case::{
    Arithmetic, Attention, Block, Case, Claim, Data, Head, Layer, Mask, Model, Token, Wanted,
};
use crate::soundness::files;

/// Two words with these vectors, two labels that read coordinate `read` with either sign, and no layers yet.
fn base(single: bool, embedding: &[&[f64]], read: usize) -> Model {
    let d = embedding[0].len();
    let weight = (0..2 * d)
        .map(|i| {
            if i == read {
                1.0
            } else if i == d + read {
                -1.0
            } else {
                0.0
            }
        })
        .collect();
    Model {
        single,
        d,
        embedding: Some(embedding.concat()),
        start: None,
        positions: None,
        pre: None,
        layers: vec![],
        head: Some(Head { labels: true, rows: 2, weight, bias: vec![0.0, 0.0] }),
    }
}

/// A matrix with these entries.
fn matrix(rows: usize, columns: usize, entries: &[(usize, usize, f64)]) -> Vec<f64> {
    let mut out = vec![0.0; rows * columns];
    entries.iter().for_each(|&(r, c, x)| out[r * columns + c] = x);
    out
}

/// One head of attention that does nothing.
fn idle(d: usize, size: usize, mask: Mask) -> Attention {
    let n = vec![0.0; size * d];
    Attention { hard: false, heads: 1, size, mask, w_q: n.clone(), w_k: n.clone(), w_v: n.clone(), w_o: n }
}

fn attention(a: Attention) -> Layer {
    Layer { attention: Some(a), block: None }
}

/// Sequences of (word, label).
fn data(sequences: &[&[(usize, usize)]]) -> Data {
    Data {
        sequences: sequences.iter().map(|s| s.iter().map(|(w, _)| Token::Word(*w)).collect()).collect(),
        wanted: sequences.iter().map(|s| s.iter().map(|(_, l)| Wanted::Label(*l)).collect()).collect(),
    }
}

/// Writes a case with the verdicts that are true of it.
fn write(root: &Path, name: &str, verdicts: &[&str], model: &Model, data: &Data, claim: Claim, arithmetic: Arithmetic) {
    let dir = root.join(name);
    let _ = fs::remove_dir_all(&dir);
    let case = Case { kind: "attack", model: model.clone(), data: data.clone(), arithmetic, claim };
    files::write(&case, &dir).unwrap();
    expect(&dir, verdicts, Some(arithmetic));
}

fn expect(dir: &Path, verdicts: &[&str], arithmetic: Option<Arithmetic>) {
    let mut expected = json!({"verdict": verdicts, "says": ""});
    if let [one] = verdicts {
        expected["verdict"] = json!(one);
    }
    if let Some(arithmetic) = arithmetic {
        expected["precision"] = json!(arithmetic.name());
    }
    fs::write(dir.join("expect.json"), format!("{expected}\n")).unwrap();
}

pub fn all(root: &Path) {
    softmax(root);
    softmax_mapping(root);
    zeros(root);
    skips(root);
    outputs(root);
    underflow(root);
    mapping_sizes(root);
    impossible(root);
    nothing_claimed(root);
}

/// A key of three products and more whose large parts cancel: `exact` is the score of word 1 at every token (word 0 has 0), and
/// partial sums are of size `large`. The label is that of the word that wins.
fn canceling(single: bool, large: f64, parts: [f64; 2]) -> Model {
    let mut model =
        base(single, &[&[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0], &[large, parts[0], -large, parts[1], 1.0, -1.0, 0.0]], 6);
    let mut a = idle(7, 4, Mask::None);
    a.w_q = matrix(4, 7, &[(0, 4, 1.0), (1, 4, 1.0), (2, 4, 1.0), (3, 4, 1.0)]);
    a.w_k = matrix(4, 7, &[(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (3, 3, 1.0)]);
    a.w_v = matrix(4, 7, &[(0, 5, 1.0)]);
    a.w_o = matrix(7, 4, &[(6, 0, 1.0)]);
    model.layers = vec![attention(a)];
    model
}

/// A weight as exp(score) times exp(radius) is 0 times infinity.
fn softmax(root: &Path) {
    let (single, double, real) = (Arithmetic::Single, Arithmetic::Double, Arithmetic::Real);
    let first = data(&[&[(0, 0), (1, 0)], &[(1, 0), (0, 0), (1, 0)]]);
    let second = data(&[&[(0, 1), (1, 1)], &[(1, 1), (0, 1), (1, 1)]]);
    let alone = data(&[&[(0, 0), (1, 0)]]);
    // Between -1100 and 1300 in binary32, by the order.
    let f32s = canceling(true, 2_f64.powi(43), [-2400.0, 1300.0]);
    write(root, "softmax-drop-f32", &["unknown"], &f32s, &alone, Claim::Labels, single);
    write(root, "softmax-drop-f32-longer", &["unknown"], &f32s, &first, Claim::Labels, single);
    write(root, "softmax-drop-f32-flipped", &["unknown"], &f32s, &second, Claim::Labels, single);
    let f64s = canceling(false, 2_f64.powi(75), [-2600.0, 1500.0]);
    write(root, "softmax-drop-f64", &["unknown"], &f64s, &alone, Claim::Labels, double);
    write(root, "softmax-drop-f64-flipped", &["unknown"], &f64s, &second, Claim::Labels, double);
    // In real arithmetic the second word wins by 1000; left to right in f64 it loses by 900.
    let wins = canceling(false, 2_f64.powi(110), [1900.0, -900.0]);
    write(root, "softmax-drop-real", &["refuted", "unknown"], &wins, &first, Claim::Labels, real);
    write(root, "softmax-drop-real-right", &["verified", "unknown"], &wins, &second, Claim::Labels, real);
    // The same score in the second of two heads, behind an earlier layer.
    let mut deep = f32s.clone();
    if let Some(a) = deep.layers[0].attention.as_mut() {
        a.heads = 2;
        for w in [&mut a.w_q, &mut a.w_k, &mut a.w_v, &mut a.w_o] {
            let zeros = vec![0.0; w.len()];
            w.splice(0..0, zeros);
        }
    }
    deep.layers.insert(0, attention(idle(7, 1, Mask::Causal)));
    write(root, "softmax-drop-second-head", &["unknown"], &deep, &alone, Claim::Labels, single);
}

/// The same in contextual mappings: contexts that seem apart and are not, and the other way.
fn softmax_mapping(root: &Path) {
    // Words 1 and 2 have the same value; both win against word 0, word 1 only in exact arithmetic.
    let large = 2_f64.powi(105);
    let rows: [&[f64]; 3] = [
        &[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0],
        &[large, 1800.0, -large, -850.0, 1.0, -1.0, 0.0],
        &[0.0, 900.0, 0.0, 0.0, 1.0, -1.0, 0.0],
    ];
    let mut model = canceling(false, large, [1800.0, -850.0]);
    (model.embedding, model.head) = (Some(rows.concat()), None);
    let claim = |delta: f64| Claim::Mapping(0, 107.0, delta);
    let two = data(&[&[(0, 0), (1, 0)], &[(0, 0), (2, 0)]]);
    write(root, "softmax-drop-mapping", &["refuted", "unknown"], &model, &two, claim(-3.0), Arithmetic::Real);
    let one = data(&[&[(0, 0)], &[(0, 0), (1, 0)]]);
    write(root, "softmax-drop-mapping-right", &["verified", "unknown"], &model, &one, claim(-3.0), Arithmetic::Real);
}

/// 0 times infinity is not 0.
fn zeros(root: &Path) {
    let huge = f64::from(f32::MAX) * 0.75;
    let words: [&[f64]; 2] = [&[1.0, 0.5, 0.25], &[-1.0, 0.5, 0.25]];
    let right = data(&[&[(0, 0), (1, 1)], &[(1, 1)]]);
    let put = |name: &str, model: &Model| {
        write(root, name, &["unknown"], model, &right, Claim::Labels, Arithmetic::Single);
    };
    let plain = base(true, &words, 0);
    let with = |a: Attention| Model { layers: vec![attention(a)], ..plain.clone() };
    // The value overflows, and W_O is 0.
    let mut value = with(Attention { w_v: vec![0.0, huge, huge], ..idle(3, 1, Mask::None) });
    value.embedding = Some(vec![1.0, 2.0, 2.0, -1.0, 2.0, 2.0]);
    put("zero-hides-value", &value);
    // Scores overflow to one infinity, and infinity minus infinity is subtracted; values and W_O are 0.
    put(
        "zero-hides-score",
        &with(Attention { w_q: vec![0.0, huge, 0.0], w_k: vec![0.0, 0.0, huge], ..idle(3, 1, Mask::Causal) }),
    );
    // A hidden unit overflows, and W2 is 0.
    let block = |w1: Vec<f64>, b1: f64, w2: Vec<f64>| Block { hidden: 1, w1, b1: vec![b1], w2, b2: vec![0.0; 3] };
    let fed = |b: Block| Layer { attention: None, block: Some(b) };
    let unit = block(vec![0.0, huge, huge], huge, vec![0.0; 3]);
    put("zero-hides-unit", &Model { layers: vec![fed(unit.clone())], ..plain.clone() });
    put(
        "zero-hides-unit-before",
        &Model { pre: Some(unit), layers: vec![attention(idle(3, 1, Mask::None))], ..plain.clone() },
    );
    // A coordinate of every token overflows; keys, queries, values, units and labels all have weight 0 for it.
    let sum = Model {
        embedding: Some(vec![1.0, 0.5, huge, -1.0, 0.5, huge]),
        positions: Some([0.0, 0.0, huge].repeat(4)),
        ..plain.clone()
    };
    put("zero-hides-input-keys", &Model { layers: vec![attention(idle(3, 1, Mask::None))], ..sum.clone() });
    put(
        "zero-hides-input-unit",
        &Model { layers: vec![fed(block(vec![1.0, 0.0, 0.0], 0.0, vec![0.5, 0.0, 0.0]))], ..sum },
    );
    // The attended token is finite, the one that hardmax leaves out is not.
    let mut hard =
        Attention { hard: true, w_q: vec![0.0, 1.0, 0.0], w_k: vec![1.0, 0.0, 0.0], ..idle(3, 1, Mask::None) };
    (hard.w_v, hard.w_o) = (vec![0.0, huge, huge], vec![0.0, 0.0, 1.0]);
    let mut left = with(hard);
    left.embedding = Some(vec![1.0, 0.5, 0.25, -1.0, 1.0, 1.0]);
    let both = data(&[&[(0, 0), (1, 1)], &[(1, 1), (0, 0), (1, 1)]]);
    write(root, "zero-hides-unattended", &["unknown"], &left, &both, Claim::Labels, Arithmetic::Single);
}

/// The skip adds a token that is itself rounded: its radius belongs to the partial sums.
fn skips(root: &Path) {
    for (single, top) in [(true, 4), (false, 0), (true, -30)] {
        let bits = if single { 24 } else { 53 };
        let (whole, step) = (2_f64.powi(top), 2_f64.powi(top - bits));
        // Just over half a unit below `whole`; three of them carry the sum up to it, in most orders.
        let half = |k: f64| {
            let x = step / 2.0 * (1.0 + k * 2_f64.powi(if single { -12 } else { -30 }));
            if single { f64::from(x as f32) } else { x }
        };
        let mut model = base(single, &[&[whole - 3.0 * step, whole]], 0);
        let block = Block {
            hidden: 2,
            w1: vec![0.0; 4],
            b1: vec![1.0, 1.0],
            w2: vec![half(1.0), half(1.0), 0.0, 0.0],
            b2: vec![step / 2.0, 0.0],
        };
        let add = 2.0 * half(1.0) / whole;
        let a = Attention { w_v: vec![0.0, add], w_o: vec![1.0, 0.0], ..idle(2, 1, Mask::None) };
        let head = model.head.as_mut().expect("labels");
        head.weight = vec![1.0, 0.0, 0.0, 0.0];
        head.bias = vec![0.0, whole + 2.0 * step];
        let one = data(&[&[(0, 1)]]);
        let arithmetic = if single { Arithmetic::Single } else { Arithmetic::Double };
        let name = |part: &str| format!("skip-radius-{part}-{}-{top}", arithmetic.name()).replace("--", "-minus-");
        let fed = Layer { attention: None, block: Some(block.clone()) };
        let later = Model { layers: vec![fed, attention(a.clone())], ..model.clone() };
        write(root, &name("after-layer"), &["unknown"], &later, &one, Claim::Labels, arithmetic);
        let before = Model { pre: Some(block), layers: vec![attention(a)], ..model };
        write(root, &name("after-pre"), &["unknown"], &before, &one, Claim::Labels, arithmetic);
    }
}

/// Tokens judged one by one, not counted: an impossible token that happens to hold makes up for none.
fn outputs(root: &Path) {
    let model = Model {
        single: false,
        d: 1,
        embedding: None,
        start: None,
        positions: None,
        pre: None,
        layers: vec![attention(Attention { w_v: vec![1.0], w_o: vec![0.5], ..idle(1, 1, Mask::None) })],
        head: None,
    };
    let sequence = |x: f64, y: f64| (vec![Token::Vector(vec![x])], vec![Wanted::Output(vec![y])]);
    let pairs = [(2.0, 3.0), (2.0, 3.0), (2.0, 3.125), (4.0, 9.0)].map(|(x, y)| sequence(x, y));
    let (sequences, wanted) = pairs.into_iter().unzip();
    let all = Data { sequences, wanted };
    for (name, claims) in [("outputs-judged", &[0.25][..]), ("outputs-judged-after-another", &[50.0, 0.25])] {
        let dir = root.join(name);
        write(root, name, &["refuted"], &model, &all, Claim::Labels, Arithmetic::Double);
        let claims: Vec<Value> =
            claims.iter().map(|t| json!({"kind": "outputs", "arithmetic": if *t > 1.0 || claims.len() == 1 { "f64" } else { "real" }, "tolerance": t})).collect();
        certify(&dir, &files::data(&all), &json!(claims));
        expect(&dir, &["refuted"], None);
    }
}

/// Products of tiny numbers are not 0.
fn underflow(root: &Path) {
    // The keys of the two words differ by 2^-122, the queries are subnormal; the label depends on who is attended to.
    let tiny = 2_f64.powi(-61);
    let mut model = base(false, &[&[1.0, 0.0, 1.0, 0.0], &[1.0, tiny, -1.0, 0.0]], 3);
    let mut a = Attention { hard: true, ..idle(4, 1, Mask::None) };
    a.w_q = vec![2_f64.powi(-1070), 0.0, 0.0, 0.0];
    a.w_k = vec![1.0, tiny, 0.0, 0.0];
    a.w_v = vec![0.0, 0.0, 1.0, 0.0];
    a.w_o = vec![0.0, 0.0, 0.0, 1.0];
    model.layers = vec![attention(a)];
    if let Some(head) = model.head.as_mut() {
        head.bias = vec![0.5, -0.5];
    }
    // A tie would give 0 and the first label, by its bias; the second word wins, which gives -1 and the second.
    let tie = data(&[&[(0, 0), (1, 0)]]);
    let truth = data(&[&[(0, 1), (1, 1)]]);
    write(root, "hardmax-underflow-real", &["refuted", "unknown"], &model, &tie, Claim::Labels, Arithmetic::Real);
    write(
        root,
        "hardmax-underflow-real-right",
        &["verified", "unknown"],
        &model,
        &truth,
        Claim::Labels,
        Arithmetic::Real,
    );
    // A label score that is not 0, but rounds to it.
    let small = 2_f64.powi(-600);
    let mut margin = base(false, &[&[small], &[-small]], 0);
    margin.layers = vec![attention(idle(1, 1, Mask::None))];
    if let Some(head) = margin.head.as_mut() {
        head.weight = vec![small, -small];
    }
    let signs = data(&[&[(0, 0), (1, 1)]]);
    write(root, "margin-underflow-real", &["verified", "unknown"], &margin, &signs, Claim::Labels, Arithmetic::Real);
    let flipped = data(&[&[(0, 0), (1, 0)]]);
    write(
        root,
        "margin-underflow-real-wrong",
        &["refuted", "unknown"],
        &margin,
        &flipped,
        Claim::Labels,
        Arithmetic::Real,
    );
}

/// Norms and gaps whose squares leave the range of f64.
fn mapping_sizes(root: &Path) {
    let put = |name: &str, verdicts: &[&str], exponent: i32, r: f64, delta: f64| {
        let x = 2_f64.powi(exponent);
        let mut model = base(false, &[&[x, 0.0], &[5.0 * x, 2.0 * x]], 0);
        (model.layers, model.head) = (vec![attention(idle(2, 1, Mask::None))], None);
        let all = data(&[&[(0, 0), (1, 0)]]);
        write(root, name, verdicts, &model, &all, Claim::Mapping(0, r, delta), Arithmetic::Real);
    };
    // The larger norm is sqrt(29) x, the gap sqrt(20) x.
    put("mapping-r-underflow", &["refuted", "unknown"], -700, -698.0, -703.0);
    put("mapping-r-underflow-right", &["verified", "unknown"], -700, -697.0, -703.0);
    put("mapping-r-overflow", &["refuted", "unknown"], 600, 602.0, 590.0);
    put("mapping-r-overflow-right", &["verified", "unknown"], 600, 603.0, 602.0);
    put("mapping-delta-underflow", &["refuted", "unknown"], -900, -890.0, -897.0);
    put("mapping-delta-underflow-right", &["verified", "unknown"], -900, -890.0, -898.0);
}

/// Behind more than one mask, order matters: what looks like one context is two.
fn impossible(root: &Path) {
    use Mask::{Causal, None};
    let stacked = |masks: &[Mask]| {
        let mut model = base(true, &[&[1.0], &[1.0], &[1.0]], 0);
        model.layers = masks.iter().map(|m| attention(idle(1, 1, *m))).collect();
        model
    };
    // The last word sees the same words in another order.
    let order = data(&[&[(0, 0), (1, 0), (2, 0)], &[(1, 0), (0, 0), (2, 1)]]);
    let put = |name: &str, verdict: &str, masks: &[Mask], data: &Data| {
        write(root, name, &[verdict], &stacked(masks), data, Claim::Labels, Arithmetic::Single);
    };
    put("impossible-causal-twice", "refuted", &[Causal, Causal], &order);
    put("impossible-causal-then-none", "refuted", &[Causal, None], &order);
    // The middle word sees other words before it, then all.
    let prefix = data(&[&[(0, 0), (2, 0), (1, 0)], &[(2, 1), (0, 0), (1, 0)]]);
    put("impossible-none-then-causal", "refuted", &[None, Causal], &prefix);
    // These are impossible indeed.
    put("impossible-indeed-none", "verified", &[None, None], &order);
    put("impossible-indeed-causal", "verified", &[Causal], &order);
}

/// What was not asked or not checked is not verified.
fn nothing_claimed(root: &Path) {
    let mut model = base(true, &[&[1.0], &[-1.0]], 0);
    model.layers = vec![attention(idle(1, 1, Mask::None))];
    let none = Data::default();
    let labels = json!([{"kind": "labels", "arithmetic": "f32", "right": 2, "undecided": []}]);
    let rank = json!({"kind": "rank", "tensor": "layers.0.attention.w_k", "rank": 0});
    for (name, claims) in [
        ("no-claims-no-data", json!([])),
        ("labels-without-data", labels.clone()),
        ("labels-and-rank-without-data", json!([labels[0], rank])),
        ("outputs-without-data", json!([{"kind": "outputs", "arithmetic": "f32", "tolerance": 1.0}])),
        (
            "mapping-without-data",
            json!([{"kind": "contextual-mapping", "layer": 0, "arithmetic": "real", "log2_r": 9.0, "log2_delta": -9.0}]),
        ),
    ] {
        let dir = root.join(name);
        write(root, name, &["unknown"], &model, &none, Claim::Labels, Arithmetic::Single);
        certify(&dir, "", &claims);
        expect(&dir, &["unknown"], None);
    }
}
