//! Inputs for which the rules once said something false.

use monolayer_core::claims::inputs::wanted;
use monolayer_core::claims::{Found, Request, check};
use monolayer_core::model::{Attention, Dtype, FeedForward, Head, Layer, Mask, Model, Numbers, Tensor};
use monolayer_core::read::Limits;
use monolayer_core::read::certificate;
use monolayer_core::read::data::{Data, Kind, parse};
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::judge::{Inputs, Judge, Judged, Verdict};
use monolayer_core::rules::network::Network;
use monolayer_core::rules::sum::Arithmetic;
use monolayer_core::{Dyadic, Format, Stored};

fn numbers(format: Format, shape: &[usize], entries: &[f64]) -> Numbers {
    let (stored, bytes) = match format {
        Format::F32 => (Stored::F32, entries.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect()),
        Format::F64 => (Stored::F64, entries.iter().flat_map(|x| x.to_le_bytes()).collect()),
    };
    Numbers::Floats(Tensor::dense(shape.to_vec(), stored, bytes))
}

const UNITS: usize = 64;

/// Words a, b, ..., one layer whose 64 units all read `w1` and `b1`; the first adds 1 to the last coordinate, which the first of two
/// labels compares with a threshold.
struct Small {
    format: Format,
    embedding: Vec<Vec<f64>>,
    attention: Option<Attention>,
    w1: Vec<f64>,
    b1: f64,
    threshold: f64,
}

impl Small {
    fn model(&self) -> Model {
        let (d, words) = (self.w1.len(), self.embedding.len());
        let of = |shape: &[usize], entries: &[f64]| numbers(self.format, shape, entries);
        let mut w2 = vec![0.0; d * UNITS];
        w2[(d - 1) * UNITS] = 1.0;
        let mut weight = vec![0.0; 2 * d];
        weight[d - 1] = 1.0;
        let feed_forward = FeedForward {
            hidden: UNITS,
            w1: of(&[UNITS, d], &self.w1.repeat(UNITS)),
            b1: of(&[UNITS], &[self.b1; UNITS]),
            w2: of(&[d, UNITS], &w2),
            b2: of(&[d], &vec![0.0; d]),
        };
        let name = |row: usize| (char::from(b'a' + row as u8).to_string(), row);
        Model {
            d,
            dtype: Dtype::Float(self.format),
            max_length: None,
            vocabulary: Some((0..words).map(name).collect()),
            start: None,
            embedding: Some(of(&[words, d], &self.embedding.concat())),
            positions: None,
            pre_feed_forward: None,
            layers: vec![Layer { attention: self.attention.clone(), feed_forward: Some(feed_forward) }],
            head: Some(Head {
                labels: Some(vec!["on".into(), "off".into()]),
                weight: of(&[2, d], &weight),
                bias: of(&[2], &[-self.threshold, 0.0]),
            }),
        }
    }
}

/// Values of the first coordinates go to the last one.
fn reads(format: Format, d: usize, size: usize, mask: Mask) -> Attention {
    let mut w_v = vec![0.0; size * d];
    (0..size).for_each(|k| w_v[k * d + k] = 1.0);
    let mut w_o = vec![0.0; d * size];
    w_o[(d - 1) * size..].fill(1.0);
    let zero = numbers(format, &[1, size, d], &vec![0.0; size * d]);
    Attention {
        hard: true,
        heads: 1,
        size,
        mask,
        w_q: zero.clone(),
        w_k: zero,
        w_v: numbers(format, &[1, size, d], &w_v),
        w_o: numbers(format, &[1, d, size], &w_o),
    }
}

fn data(lines: &str) -> Data {
    parse(lines.as_bytes(), Kind::JsonLines, &Limits::default()).unwrap()
}

fn judge(model: &Model, data: &Data, format: Format, claims: Option<&str>) -> Result<Found, String> {
    let text = claims.map(|claims| {
        let hash = &data.hash;
        format!(r#"{{"format":"monolayer-certificate/1","data":{{"hash":"{hash}"}},"claims":{claims}}}"#)
    });
    let certificate = text.as_ref().map(|text| certificate::parse(text.as_bytes(), &Limits::default()).unwrap());
    let hashes = [const { None }; 4];
    check(&Request {
        model,
        hashes: &hashes,
        certificate: certificate.as_ref(),
        data: Some(data),
        arithmetic: Some(Some(format)),
        tolerance: None,
        strict: false,
        kinds: None,
        bits: 256,
        threads: 1,
        tick: &|_, _| (),
        each: &|_, _, _| (),
    })
}

/// The margin of the first token.
fn margin(model: &Model, data: &Data, format: Format) -> Option<Ball> {
    let inputs = Inputs::new(model, data).unwrap();
    let network = Network::new(model, Arithmetic::Float { format, exp_ulp: 4 }).unwrap();
    let (mut margin, wanted) = (None, wanted(model, data, None).unwrap());
    let mut found = |t: usize, judged: Judged| margin = if t == 0 { judged.margin } else { margin };
    Judge { network: &network, inputs: &inputs }.judge(&wanted, 1, &|_| (), &mut found);
    margin
}

/// The unit is on: the label "on" is given, "off" is not.
fn is_on(small: &Small, format: Format) {
    let model = small.model();
    let right = judge(&model, &data(r#"{"tokens":["a"],"labels":["on"]}"#), format, None).unwrap();
    assert_eq!(right.verdict, Verdict::Right);
    let wrong = judge(&model, &data(r#"{"tokens":["a"],"labels":["off"]}"#), format, None).unwrap();
    assert_eq!(wrong.verdict, Verdict::Wrong);
}

#[test]
fn sums_of_far_exponents_round_as_the_hardware_does() {
    let of = |x: f64| Dyadic::from_bits(Format::F64, x.to_bits());
    let mut state = 3_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 31
    };
    let mut pairs = vec![(1.0, 2_f64.powi(-11) * (1.0 + f64::EPSILON)), (1.0, -2_f64.powi(-54)), (3.0, 5e-324)];
    for _ in 0..300_000 {
        // Short mantissas beside long ones, exponents up to 130 apart.
        let short = f64::from_bits((random() & 0x800F_0000_0000_0000) | (500 + random() % 1000) << 52);
        let short = f64::from_bits(short.to_bits() & !(u64::MAX >> 12 >> (random() % 53)));
        let by = 2_f64.powi((random() % 260) as i32 - 130);
        pairs.push((short, short * by * f64::from_bits((random() >> 12) | 1023 << 52)));
    }
    for (x, y) in pairs {
        if (x + y).is_finite() && y.is_finite() {
            let sum = of(x).unwrap().plus(of(y).unwrap(), Format::F64);
            assert_eq!(sum, of(x + y), "{x:e} + {y:e}");
        }
    }
}

#[test]
fn a_bias_beyond_the_tables_keeps_a_unit_on() {
    let format = Format::F32;
    let attention = Some(reads(format, 2, 1, Mask::None));
    // -2000 + 3000: the unit gives 1000, and -2000 + 1000 is above -1500.
    let embedding = vec![vec![-2000.0, 0.0]];
    is_on(&Small { format, embedding, attention, w1: vec![0.0, 1.0], b1: 3000.0, threshold: -1500.0 }, format);
}

#[test]
fn a_head_beyond_the_tables_keeps_a_unit_on() {
    let format = Format::F64;
    let attention = Some(reads(format, 3, 2, Mask::None));
    let embedding = vec![vec![2_f64.powi(18), -(2_f64.powi(12)), 0.0]];
    // 2^18 - 2^12 comes in, and the unit, if it is on, doubles it.
    let threshold = 300_000.0;
    is_on(&Small { format, embedding, attention, w1: vec![0.0, 0.0, 1.0], b1: -100.0, threshold }, format);
}

#[test]
fn tables_are_of_the_numbers_that_programs_have() {
    // In binary32 the coordinate is 2^-149, which the unit sees.
    let embedding = vec![vec![0.75 * 2_f64.powi(-149), 0.0]];
    let small = Small {
        format: Format::F64,
        embedding,
        attention: None,
        w1: vec![2_f64.powi(120), 0.0],
        b1: -0.9 * 2_f64.powi(-29),
        threshold: 2_f64.powi(-34),
    };
    is_on(&small, Format::F32);
}

#[test]
fn a_mask_that_is_too_small_is_an_error() {
    let attention = Some(reads(Format::F32, 2, 1, Mask::Matrix(2, vec![1; 4])));
    let embedding = vec![vec![1.0, 0.0]];
    let small = Small { format: Format::F32, embedding, attention, w1: vec![0.0; 2], b1: 0.0, threshold: 0.0 };
    let long = data(r#"{"tokens":["a","a","a"],"labels":["on","on","on"]}"#);
    assert!(judge(&small.model(), &long, Format::F32, None).is_err());
}

#[test]
fn classes_are_no_outputs() {
    let attention = Some(reads(Format::F32, 2, 1, Mask::None));
    let embedding = vec![vec![1.0, 0.0]];
    let small = Small { format: Format::F32, embedding, attention, w1: vec![0.0; 2], b1: 0.0, threshold: 0.0 };
    let one = data(r#"{"tokens":["a"],"labels":["on"]}"#);
    let claim = r#"[{"kind":"outputs","arithmetic":"f32","tolerance":0.001}]"#;
    let found = judge(&small.model(), &one, Format::F32, Some(claim)).unwrap();
    assert_eq!(found.verdict, Verdict::Unknown);
    assert!(found.claims.iter().any(|claim| claim.kind == "outputs" && claim.verdict == Verdict::Unknown));
}

#[test]
fn the_start_token_is_a_word() {
    let attention = Some(reads(Format::F32, 2, 1, Mask::Causal));
    let embedding = vec![vec![1.0, 0.0], vec![2.0, 0.0]];
    let small = Small { format: Format::F32, embedding, attention, w1: vec![0.0; 2], b1: 0.0, threshold: 0.0 };
    let mut model = small.model();
    model.start = Some(0);
    // Token 2 sees two a and two b, as token 5 does, and token 3 sees one of each: the same to every model.
    let lines = "{\"tokens\":[\"a\",\"b\",\"b\"],\"labels\":[\"on\",\"on\",\"off\"]}\n\
                 {\"tokens\":[\"b\",\"a\",\"b\",\"a\"],\"labels\":[\"on\",\"on\",\"on\",\"on\"]}";
    let found = judge(&model, &data(lines), Format::F32, None).unwrap();
    assert_eq!(found.pass.unwrap().impossible, [false, false, true, false, false, false, false]);
}

/// A model without layers: every token goes through one block that adds a number.
fn adds(number: f64) -> Model {
    let tensor = |shape: &[usize], x: f64| numbers(Format::F64, shape, &[x]);
    let part = FeedForward {
        hidden: 1,
        w1: tensor(&[1, 1], 0.0),
        b1: tensor(&[1], 0.0),
        w2: tensor(&[1, 1], 0.0),
        b2: tensor(&[1], number),
    };
    Model {
        d: 1,
        dtype: Dtype::Float(Format::F64),
        max_length: None,
        vocabulary: None,
        start: None,
        embedding: None,
        positions: None,
        pre_feed_forward: Some(part),
        layers: vec![],
        head: None,
    }
}

#[test]
fn targets_within_two_tolerances_are_possible() {
    let claim = r#"[{"kind":"outputs","arithmetic":"f64","tolerance":0.2}]"#;
    let near = data(r#"{"tokens":[[1.0],[1.0],[1.0]],"labels":[[1.0],[1.1],[1.0]]}"#);
    // 0.85 is near 1.0 and not near 1.1, though one number is near both.
    assert_eq!(judge(&adds(-0.15), &near, Format::F64, Some(claim)).unwrap().verdict, Verdict::Wrong);
    assert_eq!(judge(&adds(0.0), &near, Format::F64, Some(claim)).unwrap().verdict, Verdict::Right);
    // No number is near 1.0 and 2.0: the rarer target is impossible.
    let far = data(r#"{"tokens":[[1.0],[1.0],[1.0]],"labels":[[1.0],[2.0],[1.0]]}"#);
    let found = judge(&adds(-0.15), &far, Format::F64, Some(claim)).unwrap();
    assert_eq!((found.verdict, found.pass.unwrap().impossible), (Verdict::Right, vec![false, true, false]));
}

#[test]
fn a_claim_about_no_tokens_claims_nothing() {
    let small = Small {
        format: Format::F32,
        embedding: vec![vec![1.0, 0.0]],
        attention: None,
        w1: vec![0.0; 2],
        b1: 0.0,
        threshold: 0.0,
    };
    let one = data(r#"{"tokens":["a"],"labels":["strange"]}"#);
    let claim = r#"[{"kind":"labels","arithmetic":"f32","right":0}]"#;
    let found = judge(&small.model(), &one, Format::F32, Some(claim)).unwrap();
    assert!(found.claims.iter().all(|claim| claim.kind != "labels" || claim.verdict == Verdict::Unknown));
}

/// X and Y tie exactly, and X wins by its place; over Z it wins by little more than rounding.
#[test]
fn an_exact_tie_hides_no_margin() {
    let format = Format::F32;
    let mut model = adds(0.0);
    model.dtype = Dtype::Float(format);
    model.pre_feed_forward = None;
    model.head = Some(Head {
        labels: Some(["X", "Y", "Z"].map(String::from).to_vec()),
        weight: numbers(format, &[3, 1], &[0.0, 0.0, 1.0 / 3.0]),
        bias: numbers(format, &[3], &[1.0, 1.0, 2.0 / 3.0 - 2_f64.powi(-22)]),
    });
    let one = data(r#"{"tokens":[[1.0]],"labels":["X"]}"#);
    for ratio in ["1e12", "0.5"] {
        let claim = format!(r#"[{{"kind":"labels","arithmetic":"f32","right":1,"smallest_margin_ratio":{ratio}}}]"#);
        let found = judge(&model, &one, format, Some(&claim)).unwrap();
        let margin = margin(&model, &one, format).unwrap();
        assert!(margin.is_positive() && margin.r > 0, "{margin:?}");
        let verdict = found.claims.iter().find(|claim| claim.kind == "labels").unwrap().verdict;
        assert_eq!(verdict, if ratio == "0.5" { Verdict::Right } else { Verdict::Unknown });
    }
}
