//! Witnesses: the core's enclosures of everything that a program computes for every token, written out for others to check.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use monolayer_core::enclosures::witness;
use monolayer_core::model::{Dtype, Model};
use monolayer_core::parallel::parallel;
use monolayer_core::read::certificate::Certificate;
use monolayer_core::read::directory::Hashes;
use monolayer_core::rules::judge::{Inputs, Judge};
use monolayer_core::rules::network::Network;
use monolayer_core::rules::sum::Arithmetic;
use serde_json::json;

use crate::error::{Error, Result};
use crate::open_data::Source;
use crate::options::Precision;
use crate::token_verdict::unfit;

/// Sequences that are worked on before anything is written.
const BATCH: usize = 256;

/// What witnesses are about.
pub(crate) struct About<'a> {
    pub model: &'a Model,
    pub hashes: &'a Hashes,
    pub certificate: Option<&'a Certificate<'a>>,
    pub source: &'a Source,
    pub precision: Option<Precision>,
    pub threads: usize,
}

impl About<'_> {
    /// Writes a line about the files, then those of every sequence.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let place = file.display().to_string();
        let own = match self.model.dtype {
            Dtype::Float(format) => Precision::of_arithmetic(Some(format)),
            Dtype::Exact => {
                let what = "there are no witnesses for exact numbers";
                return Err(Error::new(place, what, "leave --witness out"));
            }
        };
        let precision = self.precision.unwrap_or(own);
        let exp_ulp = self.certificate.and_then(|c| c.exp_ulp).unwrap_or(0).max(4) as u32;
        let arithmetic =
            precision.arithmetic().map_or(Arithmetic::Real, |format| Arithmetic::Float { format, exp_ulp });
        let inputs = Inputs::new(self.model, &self.source.data).map_err(|what| unfit(self.model, self.source, what))?;
        let Some(network) = Network::new(self.model, arithmetic) else {
            return Err(Error::new(place, "a number of the model may overflow", "try real arithmetic"));
        };
        let [config, tensors, vocabulary, mask] = self.hashes;
        let header = json!({
            "format": "monolayer-witness/1",
            "model": {"config": config, "tensors": tensors, "vocabulary": vocabulary, "mask": mask},
            "data": self.source.data.hash,
            "arithmetic": precision.name(),
            "exp_ulp": exp_ulp,
        });
        let written = || -> io::Result<()> {
            let mut out = BufWriter::new(File::create(file)?);
            writeln!(out, "{header}")?;
            let judge = Judge { network: &network, inputs: &inputs };
            for first in (0..self.source.sequences()).step_by(BATCH) {
                let count = BATCH.min(self.source.sequences() - first);
                let one = |i: usize| {
                    let lines = witness(&judge, first + i);
                    lines.unwrap_or_else(|| format!("{{\"sequence\":{},\"may_overflow\":true}}\n", first + i))
                };
                for lines in parallel(self.threads, count, one) {
                    out.write_all(lines.as_bytes())?;
                }
            }
            out.flush()
        };
        written().map_err(|e| Error::new(place, e.to_string(), "check the path, its permissions and the space left"))
    }
}
