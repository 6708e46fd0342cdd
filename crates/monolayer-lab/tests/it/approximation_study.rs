//! Errors and sizes against the grid, and how far a layer gets without a quantizer.

use monolayer::approximate::Approximator;
use monolayer::approximate::expression::{Expression, Program};
use monolayer_lab::approximation_study as study;

fn program(text: &str, dim: usize, length: usize) -> Program {
    Expression::parse(text, dim).unwrap().at_length(length).unwrap()
}

#[test]
fn errors_and_sizes_against_the_grid() {
    let f = program("sin(3*x1) + mean(x1)^2", 1, 2);
    let rows = study::series(&Approximator::new(), &f, &[4, 8, 16], 16_384).unwrap();
    for row in &rows {
        assert!(row.floats && row.measured.distance <= row.bound, "{row:?}");
        // The best level of a cell is nearer than f of its center, and no ramp is needed between equal levels.
        assert!(row.measured.distance <= row.plain_measured.distance, "{row:?}");
        assert!(row.size.hidden < row.plain.hidden && row.size.parameters < row.plain.parameters, "{row:?}");
        assert!(row.size.nonzero <= row.size.parameters && row.size.ids == row.grid[0].pow(2), "{row:?}");
    }
    let slope = study::slope(&rows.iter().map(|row| (row.grid[0] as f64, row.measured.distance)).collect::<Vec<_>>());
    assert!((slope + 1.0).abs() < 0.1, "{slope}");
    assert!((study::variance(&program("x1 + 3", 1, 2), 16_384) - 1.0 / 12.0).abs() < 1e-3);
}

/// Section 6: without F1 a layer knows a token and its context by one number, which is all some functions need.
#[test]
fn without_a_quantizer_few_functions_are_near() {
    let measure = |text: &str| {
        let found = study::without_quantizer(&program(text, 1, 2), 200, 8192, 0);
        assert!(found.hidden <= 200 && found.model.pre_feed_forward.is_none() && found.model.layers.len() == 1);
        (found.constant.distance, found.floor, found.measured.distance)
    };
    let (constant, _, near) = measure("x1 + mean(x1)");
    assert!(near < 0.05 * constant, "{near} of {constant}");
    let (constant, floor, far) = measure("sin(2*pi*x1 + pi*mean(x1))*mean(x1)");
    assert!(floor > 0.1 * constant && far > 0.1 * constant && far < constant, "{floor}, {far} of {constant}");
    // The model is about as good as any read-out of its attention can be.
    assert!(far < 1.1 * floor, "{far} {floor}");
}
