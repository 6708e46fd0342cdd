use super::*;
use crate::exact::big::tests::Random;
use crate::exact::forward::tests::{bare, tensor};
use crate::model::{Attention, Layer, Mask};
use crate::number::Format;

fn rows(data: &[f64], columns: usize) -> Vec<Vec<Dyadic>> {
    let number = |x: &f64| Dyadic::from_bits(Format::F64, x.to_bits()).unwrap();
    data.chunks(columns).map(|row| row.iter().map(number).collect()).collect()
}

#[test]
fn ranks_are_exact() {
    let is = |data: &[f64], columns: usize, expected: usize| {
        let all = rows(data, columns);
        assert_eq!(rank(&all, 100, &mut usize::MAX.clone()), Some(expected), "{data:?}");
    };
    is(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.0], 3, 1);
    is(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.000_000_000_000_001], 3, 2);
    is(&[0.0; 6], 2, 0);
    is(&[0.1, 1e-300, 1e300, 0.2, 2e-300, 2e300, 0.0, 0.0, 1.0], 3, 2);
    is(&[f64::from_bits(1), 0.0, 0.0, 1e308], 2, 2);
    is(&[0.0, 1.0, 0.0, 2.0, 1.0, 0.0], 2, 2);
}

/// Products of thin matrices of whole numbers have the thin rank, or less.
#[test]
fn ranks_of_products() {
    let mut random = Random(5);
    for _ in 0..200 {
        let (n, m, r) = (random.next() as usize % 8 + 1, random.next() as usize % 8 + 1, random.next() as usize % 4);
        let mut draw = |count: usize| (0..count).map(|_| (random.next() % 7) as f64 - 3.0).collect::<Vec<f64>>();
        let (a, b) = (draw(n * r), draw(r * m));
        let entry = |i: usize, j: usize| (0..r).map(|k| a[i * r + k] * b[k * m + j]).sum::<f64>();
        let data: Vec<f64> = (0..n * m).map(|k| entry(k / m, k % m)).collect();
        let all = rows(&data, m);
        let found = rank(&all, 100, &mut usize::MAX.clone()).unwrap();
        assert!(found <= r.min(n).min(m));
        let turned: Vec<f64> = (0..n * m).map(|k| entry(k % n, k / n)).collect();
        assert_eq!(rank(&rows(&turned, n), 100, &mut usize::MAX.clone()), Some(found));
        // Another number in one place changes the rank by at most one.
        let mut other = data.clone();
        other[0] += 1e-3;
        assert!(rank(&rows(&other, m), 100, &mut usize::MAX.clone()).unwrap().abs_diff(found) <= 1);
    }
}

/// Two equal rows among long numbers: only the long way would show it, and it is given up.
#[test]
fn long_eliminations_are_given_up() {
    let mut random = Random(6);
    let n = 300;
    let mut data: Vec<f64> =
        (0..n * n).map(|_| random.next() as f64 * if random.next().is_multiple_of(2) { 1e-90 } else { 1e90 }).collect();
    let (first, rest) = data.split_at_mut(n);
    rest[..n].copy_from_slice(first);
    let all = rows(&data, n);
    let start = std::time::Instant::now();
    assert_eq!(rank(&all, n - 1, &mut WORK.clone()), None);
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn claims() {
    // As the queries' weights of a layer, with as many heads as there are matrices.
    let check = |numbers: &Numbers, claimed: usize| {
        let (shape, len) = match numbers {
            Numbers::Floats(tensor) => (&tensor.shape, tensor.len()),
            Numbers::Exact(shape, texts) => (shape, texts.len()),
        };
        let d = *shape.last().unwrap();
        let zeros = || tensor(&[len], &vec![0.0; len]);
        let attention = Attention {
            hard: false,
            heads: 1,
            size: len / d,
            mask: Mask::None,
            w_q: numbers.clone(),
            w_k: zeros(),
            w_v: zeros(),
            w_o: zeros(),
        };
        let mut model = bare(d);
        model.layers.push(Layer { attention: Some(attention), feed_forward: None });
        assert_eq!(super::check(&model, "layers.0.attention.w_x", claimed), None);
        super::check(&model, "layers.0.attention.w_q", claimed)
    };
    let heads = tensor(&[2, 2, 2], &[1.0, 2.0, 2.0, 4.0, 1.0, 0.0, 0.0, 1.0]);
    assert_eq!((check(&heads, 1), check(&heads, 2)), (Some(false), Some(false)));
    let same = tensor(&[2, 2, 2], &[1.0, 2.0, 2.0, 4.0, 1.0, 0.0, 3.0, 0.0]);
    assert_eq!((check(&same, 1), check(&same, 2), check(&same, 0)), (Some(true), Some(false), Some(false)));
    assert_eq!(check(&tensor(&[4], &[1.0; 4]), 1), None);
    assert_eq!(check(&tensor(&[0, 4], &[]), 0), None);
    assert_eq!(check(&Numbers::Exact(vec![1, 1], vec!["1".into()]), 1), None);
    // Two megabytes of rank 1, and with another number in the last place.
    let n = 512;
    let outer =
        |i: usize, j: usize| ((i * 37 % 1009) as f64) * ((j * 53 % 1013) as f64 + 1.0) * 2_f64.powi(j as i32 - 256);
    let mut data: Vec<f64> = (0..n * n).map(|k| outer(k / n, k % n)).collect();
    let start = std::time::Instant::now();
    assert_eq!(check(&tensor(&[n, n], &data), 1), Some(true));
    data[n * n - 1] *= 1.0 + f64::EPSILON;
    assert_eq!(check(&tensor(&[n, n], &data), 1), Some(false));
    assert!(start.elapsed().as_secs() < 10);
}
