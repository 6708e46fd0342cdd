//! The textbook error bound for rank-1 models of one layer, token by token, as a yardstick for decisiveness: what the
//! checker leaves open although the margin is four times this bound counts against it.

use monolayer_check::model::Model;

/// The error bound of every label's score margin against the best other one, or none for models it does not speak of.
pub fn bound(model: &Model, ids: &[u32], position: usize, unit: f64, exp_ulp: f64) -> Option<f64> {
    let [layer] = model.layers.as_slice() else { return None };
    let a = layer.attention.as_ref().filter(|a| a.heads * a.size == 1 && !a.hard)?;
    if model.pre_feed_forward.is_some() {
        return None;
    }
    let d = model.d;
    let gamma = |k: usize| k as f64 * unit / (1.0 - k as f64 * unit);
    let embedding = &model.embedding.as_ref()?.weight;
    let tokens: Vec<Vec<f64>> = ids
        .iter()
        .enumerate()
        .map(|(place, &id)| {
            let position = |c: usize| model.positions.as_ref().map_or(0.0, |p| p[place * d + c]);
            (0..d).map(|c| embedding[id as usize * d + c] + position(c)).collect()
        })
        .collect();
    let x = &tokens[position];
    let visible = if a.causal { &tokens[..=position] } else { &tokens[..] };
    let n = visible.len();
    let dot = |w: &[f64], x: &[f64]| w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
    let size = |w: &[f64], x: &[f64]| w.iter().zip(x).map(|(w, x)| (w * x).abs()).sum::<f64>();
    let (q, e_q) = (dot(&a.w_q, x), gamma(d) * size(&a.w_q, x));
    let scores: Vec<(f64, f64)> = visible
        .iter()
        .map(|x| {
            let (k, e_k) = (dot(&a.w_k, x), gamma(d) * size(&a.w_k, x));
            let error = k.abs() * e_q + q.abs() * e_k + e_k * e_q + unit * (k.abs() + e_k) * (q.abs() + e_q);
            (k * q, error)
        })
        .collect();
    let top = scores.iter().map(|s| s.0).fold(f64::NEG_INFINITY, f64::max);
    let e_a = scores.iter().map(|s| s.1).fold(0.0, f64::max);
    let e_b = scores.iter().map(|s| s.1 + unit * ((s.0 - top).abs() + 2.0 * e_a)).fold(0.0, f64::max) + e_a;
    let theta = e_b.exp() * (1.0 + 2.0 * exp_ulp * unit) - 1.0;
    let weights: Vec<f64> = scores.iter().map(|s| (s.0 - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    let values: Vec<f64> = visible.iter().map(|x| dot(&a.w_v, x)).collect();
    let g = weights.iter().zip(&values).map(|(w, v)| w * v).sum::<f64>() / total;
    let spread = weights.iter().zip(&values).map(|(w, v)| w * (v - g).abs()).sum::<f64>() / total;
    let mean = weights.iter().zip(&values).map(|(w, v)| w * v.abs()).sum::<f64>() / total;
    let e_p = visible.iter().map(|x| gamma(d) * size(&a.w_v, x)).fold(0.0, f64::max);
    let e_g = theta / (1.0 - theta) * spread + (gamma(n - 1) + gamma(n + 1)) * mean * (1.0 + 2.0 * theta) + e_p;
    let h: Vec<f64> = (0..d).map(|c| x[c] + a.w_o[c] * g).collect();
    let e_h: Vec<f64> =
        (0..d).map(|c| a.w_o[c].abs() * (e_g + unit * g.abs()) + unit * (h[c].abs() + x[c].abs())).collect();
    let (output, error) = match &layer.feed_forward {
        None => (h, e_h),
        Some(part) => {
            let mut sizes: Vec<f64> = h.iter().zip(&part.b2).map(|(h, b)| h.abs() + b.abs()).collect();
            let mut output: Vec<f64> = h.iter().zip(&part.b2).map(|(h, b)| h + b).collect();
            let mut error = e_h.clone();
            for j in 0..part.hidden {
                let row = &part.w1[j * d..(j + 1) * d];
                let unit_error = size(row, &e_h) + gamma(d + 1) * (size(row, &h) + part.b1[j].abs());
                let value = dot(row, &h) + part.b1[j];
                if value + unit_error > 0.0 {
                    for c in 0..d {
                        let w = part.w2[j * d + c];
                        output[c] += w * value.max(0.0);
                        error[c] += w.abs() * unit_error;
                        sizes[c] += (w * value.max(0.0)).abs();
                    }
                }
            }
            for c in 0..d {
                error[c] += gamma(part.hidden + 2) * sizes[c];
            }
            (output, error)
        }
    };
    let head = model.head.as_ref()?;
    let of_score = |l: usize| {
        let row = &head.weight[l * d..(l + 1) * d];
        size(row, &error) + gamma(d + 1) * (size(row, &output) + head.bias[l].abs())
    };
    let worst = (0..head.bias.len()).map(of_score).fold(0.0, f64::max);
    Some(2.0 * worst)
}
