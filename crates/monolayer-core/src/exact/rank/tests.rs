use super::*;
use crate::exact::big::tests::Random;
use crate::number::Format;

fn rows(data: &[f64], columns: usize) -> Vec<Vec<Dyadic>> {
    let number = |x: &f64| Dyadic::from_bits(Format::F64, x.to_bits()).unwrap();
    data.chunks(columns).map(|row| row.iter().map(number).collect()).collect()
}

#[test]
fn ranks_are_exact() {
    let is = |data: &[f64], columns: usize, expected: usize| {
        let all = rows(data, columns);
        assert_eq!(exactly(&all, 100, &mut usize::MAX.clone()), Some(expected), "{data:?}");
        assert_eq!(modulo_prime(&all, &mut usize::MAX.clone()), Some(expected), "{data:?}");
    };
    is(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.0], 3, 1);
    is(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.000_000_000_000_001], 3, 2);
    is(&[0.0; 6], 2, 0);
    is(&[0.1, 1e-300, 1e300, 0.2, 2e-300, 2e300, 0.0, 0.0, 1.0], 3, 2);
    is(&[f64::from_bits(1), 0.0, 0.0, 1e308], 2, 2);
    is(&[0.0, 1.0, 0.0, 2.0, 1.0, 0.0], 2, 2);
    // Modulo the prime both rows are the same.
    let all = rows(&[1.0, 1.0, 1.0, 2_f64.powi(61)], 2);
    assert_eq!(modulo_prime(&all, &mut 1000), Some(1));
    assert_eq!(exactly(&all, 1, &mut 1000), Some(2));
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
        let found = exactly(&all, 100, &mut usize::MAX.clone()).unwrap();
        assert!(found <= r.min(n).min(m));
        assert_eq!(modulo_prime(&all, &mut usize::MAX.clone()), Some(found));
        let turned: Vec<f64> = (0..n * m).map(|k| entry(k % n, k / n)).collect();
        assert_eq!(exactly(&rows(&turned, n), 100, &mut usize::MAX.clone()), Some(found));
        // Another number in one place changes the rank by at most one.
        let mut other = data.clone();
        other[0] += 1e-3;
        assert!(exactly(&rows(&other, m), 100, &mut usize::MAX.clone()).unwrap().abs_diff(found) <= 1);
    }
}

/// Two equal rows among long numbers: only the long way would show it, and it is given up.
#[test]
fn long_eliminations_are_given_up() {
    let mut random = Random(6);
    let n = 300;
    let mut data: Vec<f64> =
        (0..n * n).map(|_| random.next() as f64 * if random.next().is_multiple_of(2) { 1e-90 } else { 1e90 }).collect();
    assert_eq!(modulo_prime(&rows(&data, n), &mut RESIDUES.clone()), Some(n));
    let (first, rest) = data.split_at_mut(n);
    rest[..n].copy_from_slice(first);
    let all = rows(&data, n);
    assert_eq!(modulo_prime(&all, &mut RESIDUES.clone()), Some(n - 1));
    let start = std::time::Instant::now();
    assert_eq!(exactly(&all, n - 1, &mut LIMBS.clone()), None);
    assert!(start.elapsed().as_secs() < 60);
    assert_eq!(modulo_prime(&all, &mut 1000), None);
}
