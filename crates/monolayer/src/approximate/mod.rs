//! Proposition 1, token by token: any continuous function on sequences into a quantizer, one rank-1 attention layer and one
//! feed-forward block, with a certified bound on the distance.
//!
//! The cube is cut into cells; the quantizer F1 gives every cell of a token a code, attention makes an id of the codes of a
//! sequence, and the read-out F2 gives every id the level of f in its cell. The proof as printed cannot be built
//! (docs/errata.md); here all skips are kept, repeated tokens are right, and outside the cube the output is 0.

pub mod cells;
mod codes;
mod distance_bound;
mod distinct_sums;
pub mod expression;
pub mod function;
mod ids;
mod layout;
pub mod measured_distance;
mod model_size;
mod quantizer;
mod readout;
mod save;
mod settings;
mod smallest_grid;

use codes::CellCodes;
pub use distance_bound::Bound;
use ids::CellIds;
use layout::Layout;
pub use model_size::ModelSize;
use quantizer::Quantizer;
use readout::{CellReadout, TooClose};
pub use settings::{Approximator, CANDIDATES, EFFORT, MOST_IDS, Progress};
pub use smallest_grid::{Needed, SmallestGrid, Tried};

use crate::approximate::function::Function;
use crate::arithmetic::matrix::Matrix;
use crate::error::{Error, Result};
use crate::model::{Model, Source};
use crate::paper::attention::{Attention, Mask};
use crate::paper::transformer::{Layer, Transformer};
use cells::{Cells, Grid, Levels};

/// Edges are multiples of this, see [`Grid`].
const EDGE: f64 = 1.0 / (1_u64 << 31) as f64;
/// The narrowest ramp that is tried.
const NARROWEST: f64 = 2.0 * EDGE;

/// A model that approximates a function, and what is known of it.
///
/// ```
/// use monolayer::{Approximator, Expression};
///
/// let f = Expression::parse("x1 + mean(x1)", 1)?.at_length(2)?;
/// let approximation = Approximator::new().compile(&f, 8)?;
/// let mut outputs = [0.0; 2];
/// approximation.evaluate(&[0.3, 0.6], &mut outputs);
/// assert!((outputs[0] - 0.75).abs() < 0.2 && approximation.certified() < 0.2);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Approximation {
    /// The model.
    pub model: Model<f64>,
    /// What was approximated, as its certificate calls it.
    pub function: String,
    /// The exponent p of d_p that the bound is for.
    pub p: f64,
    /// The grid.
    pub grid: Grid,
    /// The width of the quantizer's ramps.
    pub ramp: f64,
    /// The cells of sequences.
    pub cells: Cells,
    /// The certified bound.
    pub bound: Bound,
    /// Whether the bound holds in double precision, in any order of summation; else in real arithmetic only.
    pub floats: bool,
    /// The level of each cell, row-major `[M, d]`.
    pub levels: Vec<f64>,
    /// The cells in the order of their ids.
    pub order: Vec<u32>,
    /// Their ids, in that order: the first coordinate after attention.
    pub ids: Vec<f64>,
    /// The distance of neighboring ids over the error of a computed one.
    pub margin: f64,
    /// What the function's author vouches for.
    pub vouched: Option<String>,
}

/// Everything but the weights.
struct Blueprint {
    grid: Grid,
    cells: Cells,
    arrangement: Arrangement,
    readout: CellReadout,
    bound: Bound,
}

/// How cells become ids: everything but the levels.
struct Arrangement {
    layout: Layout,
    quantizer: Quantizer,
    ids: CellIds,
    /// What a computed id can be off, in quanta; 0 where only real arithmetic counts.
    error: f64,
}

impl Approximator<'_> {
    /// Approximates f on a grid of `parts` equal parts in each coordinate.
    pub fn compile(&self, f: &dyn Function, parts: usize) -> Result<Approximation> {
        Ok(self.assemble(f, self.blueprint(f, parts)?))
    }

    /// Everything but the weights.
    fn blueprint(&self, f: &dyn Function, parts: usize) -> Result<Blueprint> {
        if parts == 0 || !(self.p >= 1.0 && self.p.is_finite()) {
            return Err(Error::setting(
                format!("a grid of {parts} parts and p = {}", self.p),
                "use at least 1 for both",
            ));
        }
        self.check_ids(f, parts)?;
        let grid = Grid::uniform(f.dim(), parts);
        let levels = cells::levels(f, &grid, self.p, self.effort, &|more, of| self.cells(more, of))?;
        self.blueprint_on(grid, &levels)
    }

    /// Everything but the weights, for a grid with its levels.
    fn blueprint_on(&self, grid: Grid, levels: &Levels) -> Result<Blueprint> {
        let cells = levels.cells;
        let mut best: Option<(Arrangement, CellReadout, Bound)> = None;
        for codes in self.codes(&grid, &cells) {
            let Some(arrangement) = Arrangement::with(&grid, &cells, &codes) else { continue };
            let Ok(readout) = arrangement.read_out(levels, grid.edges.len()) else { continue };
            let bound = Bound::new(levels, &readout, &grid, arrangement.quantizer.ramp);
            if best.as_ref().is_none_or(|(_, _, best)| bound.inside < best.inside) {
                best = Some((arrangement, readout, bound));
            }
        }
        let (arrangement, readout, bound) = best.ok_or_else(|| does_not_fit(&cells))?;
        Ok(Blueprint { grid, cells, arrangement, readout, bound })
    }

    /// Codes worth trying.
    fn codes(&self, grid: &Grid, cells: &Cells) -> Vec<CellCodes> {
        let on_progress = |tried: usize| self.report(&Progress::Codes(tried));
        let exact = codes::exact_codes(grid, cells);
        if !cells.symmetric {
            return exact.into_iter().collect();
        }
        // With two other tokens, those that softmax orders by sum and variance: neighbors on the line are alike, and so are
        // their levels, which leaves room for finer ones.
        let plain = (cells.length == 3 && cells.token_cells > 1)
            .then(|| codes::searched_codes(grid, cells, self.seed, 1, &on_progress));
        match (exact, plain) {
            (Some(exact), plain) => std::iter::once(exact).chain(plain).collect(),
            (None, _) => vec![codes::searched_codes(grid, cells, self.seed, self.candidates, &on_progress)],
        }
    }

    /// An error if a grid makes too many ids.
    fn check_ids(&self, f: &dyn Function, parts: usize) -> Result<()> {
        let (ids, units) = match self.ids(f, parts as u64) {
            Some(ids) if ids <= self.most_ids => return Ok(()),
            Some(ids) => (ids.to_string(), format!("about {} hidden units", 2 * u128::from(ids) + 1)),
            None => ("more than 2^63".to_owned(), "twice as many hidden units".to_owned()),
        };
        Err(Error::too_large(
            format!("a grid of {parts} parts makes {ids} ids, {units}, and {} ids are the most here", self.most_ids),
            "use a coarser `grid` or a larger `epsilon`",
        ))
    }

    /// The weights: eq. 19 with all skips.
    fn assemble(&self, f: &dyn Function, blueprint: Blueprint) -> Approximation {
        let Blueprint { grid, cells, arrangement, readout, bound } = blueprint;
        let Arrangement { layout, quantizer, ids, error } = arrangement;
        let (d, quantum) = (f.dim(), readout.quantum());
        let (key, value) = (layout.key / quantum, layout.length as f64 / layout.own / (layout.key / quantum));
        let first = |x: f64| {
            let mut vector = vec![0.0; d];
            vector[0] = x;
            vector
        };
        // Eq. 20: keys and values key e_1, queries kappa key e_1.
        let attention = Attention::rank_one(Mask::None, &first(key), &first(layout.kappa * key), &first(value));
        let positions = (!cells.symmetric).then(|| Matrix::from_fn(f.length(), d, |position, _| 2.0 * position as f64));
        let model = Model {
            words: None,
            positions,
            transformer: Transformer {
                d,
                pre_feed_forward: Some(quantizer.block(quantum)),
                layers: vec![Layer { attention: Some(attention), feed_forward: Some(readout.block()) }],
            },
            head: None,
            outputs: None,
            source: Source::Approximate {
                length: f.length(),
                grid: grid.parts(),
                p: self.p,
                seed: self.seed,
                candidates: self.candidates,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                function: f.description(),
            },
        };
        Approximation {
            model,
            function: f.description(),
            p: self.p,
            ramp: quantizer.ramp,
            cells,
            floats: error > 0.0 && bound.rounding <= bound.real,
            bound,
            levels: readout.levels,
            ids: ids.at.iter().map(|at| (layout.first() + at) * quantum).collect(),
            order: ids.order,
            margin: if error > 0.0 { ids.gap / error } else { 0.0 },
            vouched: f.assumption(),
            grid,
        }
    }
}

fn does_not_fit(cells: &Cells) -> Error {
    let count = cells.count().unwrap_or(u64::MAX);
    Error::too_large(
        format!("double precision cannot hold the codes of {count} ids of sequences of {} tokens", cells.length),
        "use a coarser `grid`, or shorter sequences",
    )
}

impl Arrangement {
    /// The scales at which computed ids are certainly told apart, or else at which true ids are.
    fn with(grid: &Grid, cells: &Cells, codes: &CellCodes) -> Option<Self> {
        let proved = (0..52).find_map(|e| Self::new(grid, cells, codes, f64::from(e).exp2(), true));
        proved.or_else(|| (2..52).find_map(|e| Self::new(grid, cells, codes, f64::from(e).exp2(), false)))
    }

    /// The arrangement with `unit` quanta to a unit, and with ramps as narrow as rounding allows; `None` if it does not do.
    fn new(grid: &Grid, cells: &Cells, codes: &CellCodes, unit: f64, floats: bool) -> Option<Self> {
        let layout = Layout::new(codes, cells.length, unit)?;
        let gap = unit * codes.gap;
        let narrow = grid.edges.iter().flat_map(|edges| edges.windows(2).map(|w| w[1] - w[0])).fold(1.0, f64::min);
        let ramps = (0..).map(|e| NARROWEST * f64::from(e).exp2()).take_while(|&ramp| ramp <= narrow / 4.0);
        let with = |ramp: f64| {
            let quantizer = Quantizer::new(grid, codes, &layout, ramp);
            let error = layout.id_error(&quantizer);
            (quantizer, error)
        };
        let (quantizer, error) = if floats {
            // What rounding costs whatever the ramps leaves them half of the room.
            if with(narrow / 4.0).1 > gap / 4.0 {
                return None;
            }
            ramps.map(with).find(|(_, error)| *error <= 0.36 * gap - 1.0)?
        } else {
            (with(NARROWEST.min(narrow / 4.0)).0, 0.0)
        };
        let ids = CellIds::new(cells, codes, &layout);
        let wide = 2.0 * error + layout::RAMP * ids.gap + 2.0;
        (ids.gap >= 4.0 && wide <= ids.gap).then_some(Self { layout, quantizer, ids, error })
    }

    fn read_out(&self, levels: &Levels, d: usize) -> std::result::Result<CellReadout, TooClose> {
        CellReadout::new(&self.ids, &self.layout, self.error, &levels.levels, d)
    }
}
