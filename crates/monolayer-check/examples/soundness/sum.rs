//! One sum, along a tree and with a choice of fusing that a gene names.

use super::float::Float;

/// A term that is not yet rounded (a product), or a number.
#[derive(Clone, Copy)]
pub enum Item<F> {
    Product(F, F),
    Value(F),
}

/// What a pair becomes: all rounded, or one of the two products fused into the addition.
#[derive(Clone, Copy, PartialEq)]
enum Fuse {
    None,
    First,
    Second,
}

impl<F: Float> Item<F> {
    pub fn value(self) -> F {
        match self {
            Self::Product(a, b) => a * b,
            Self::Value(a) => a,
        }
    }

    /// The item as an unevaluated sum of two numbers, exact but for underflow.
    fn exact(self) -> (F, F) {
        match self {
            Self::Product(a, b) => {
                let product = a * b;
                (product, a.fused(b, F::ZERO - product))
            }
            Self::Value(a) => (a, F::ZERO),
        }
    }
}

fn combine<F: Float>(a: Item<F>, b: Item<F>, fuse: Fuse) -> F {
    match (fuse, a, b) {
        (Fuse::First, Item::Product(x, y), b) => x.fused(y, b.value()),
        (Fuse::Second, a, Item::Product(x, y)) => x.fused(y, a.value()),
        _ => a.value() + b.value(),
    }
}

/// By how much a result lies above the exact sum of two items; nothing where that is no number.
fn gain<F: Float>(a: Item<F>, b: Item<F>, result: F) -> f64 {
    let ((p, e), (q, f)) = (a.exact(), b.exact());
    let s = p + q;
    let t = s - p;
    let low = (p - (s - t)) + (q - t);
    let gain = ((result - s) - (low + (e + f))).wide();
    if gain.is_nan() { 0.0 } else { gain }
}

/// A stream of numbers out of a gene.
struct Stream(u32);

impl Stream {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        (self.0 as usize) % n
    }
}

/// The methods of [`add`]; a gene is a method and a seed.
pub const METHODS: u32 = 16;
/// As far up or down as greedy choices reach.
pub const UP: u32 = 12;
pub const DOWN: u32 = 13;
pub const CHAIN_UP: u32 = 14;
pub const CHAIN_DOWN: u32 = 15;

/// The sum of some items. The items are used up.
pub fn add<F: Float>(items: &mut Vec<Item<F>>, gene: u32) -> F {
    if items.is_empty() {
        return F::ZERO;
    }
    let mut stream = Stream(gene | 1);
    match gene % METHODS {
        0 => chain(items, Fuse::None),
        1 => chain(items, Fuse::Second),
        2 => pairwise(items),
        3 | 4 => {
            items.sort_by(|a, b| a.value().wide().abs().total_cmp(&b.value().wide().abs()));
            if gene % METHODS == 4 {
                items.reverse();
            }
            chain(items, if gene & 0x100 == 0 { Fuse::None } else { Fuse::Second })
        }
        // One sign first: partial sums as large as they get.
        5 | 6 => {
            items.sort_by(|a, b| b.value().wide().total_cmp(&a.value().wide()));
            if gene % METHODS == 6 {
                items.reverse();
            }
            chain(items, if gene & 0x100 == 0 { Fuse::None } else { Fuse::Second })
        }
        7 => {
            items.reverse();
            chain(items, Fuse::Second)
        }
        UP | DOWN => greedy(items, &mut stream, gene % METHODS == UP, gene & 0x100 != 0),
        CHAIN_UP | CHAIN_DOWN => greedy_chain(items, &mut stream, gene % METHODS == CHAIN_UP),
        _ => random_tree(items, &mut stream),
    }
}

fn chain<F: Float>(items: &[Item<F>], fuse: Fuse) -> F {
    items[1..].iter().fold(items[0].value(), |sum, &item| combine(Item::Value(sum), item, fuse))
}

fn pairwise<F: Float>(items: &[Item<F>]) -> F {
    if let [one] = items {
        return one.value();
    }
    let (a, b) = items.split_at(items.len() / 2);
    pairwise(a) + pairwise(b)
}

fn random_tree<F: Float>(items: &mut Vec<Item<F>>, stream: &mut Stream) -> F {
    while items.len() > 1 {
        let a = items.swap_remove(stream.below(items.len()));
        let b = stream.below(items.len());
        let fuse = [Fuse::None, Fuse::First, Fuse::Second][stream.below(3)];
        items[b] = Item::Value(combine(a, items[b], fuse));
    }
    items[0].value()
}

/// Pairs to try at every step, unless all are tried.
const TRIES: usize = 6;

fn greedy<F: Float>(items: &mut Vec<Item<F>>, stream: &mut Stream, up: bool, all: bool) -> F {
    while items.len() > 1 {
        let n = items.len();
        let mut best: Option<(f64, usize, usize, F)> = None;
        let mut try_pair = |i: usize, j: usize| {
            let (a, b) = (items[i], items[j]);
            for fuse in [Fuse::None, Fuse::First, Fuse::Second] {
                let result = combine(a, b, fuse);
                let gain = if up { gain(a, b, result) } else { -gain(a, b, result) };
                if best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, i, j, result));
                }
            }
        };
        if all && n <= 6 {
            (0..n).for_each(|j| (0..j).for_each(|i| try_pair(i, j)));
        } else {
            for _ in 0..TRIES {
                let i = stream.below(n);
                try_pair(i, (i + 1 + stream.below(n - 1)) % n);
            }
        }
        let Some((_, i, j, result)) = best else { break };
        items[i] = Item::Value(result);
        items.swap_remove(j);
    }
    items[0].value()
}

fn greedy_chain<F: Float>(items: &mut Vec<Item<F>>, stream: &mut Stream, up: bool) -> F {
    let first = stream.below(items.len());
    let mut sum = items.swap_remove(first);
    while !items.is_empty() {
        let mut best: Option<(f64, usize, F)> = None;
        for _ in 0..TRIES.min(items.len()) {
            let i = stream.below(items.len());
            for fuse in [Fuse::None, Fuse::First, Fuse::Second] {
                let result = combine(sum, items[i], fuse);
                let gain = if up { gain(sum, items[i], result) } else { -gain(sum, items[i], result) };
                if best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, i, result));
                }
            }
        }
        let Some((_, i, result)) = best else { break };
        items.swap_remove(i);
        sum = Item::Value(result);
    }
    sum.value()
}
