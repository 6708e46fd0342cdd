//! A training run: epochs of steps, evaluations, checkpoints.
//!
//! The order of an epoch depends on the seed and the epoch alone, and evaluations look at a copy, so a run that was stopped
//! and goes on gives the same bytes as one that was not.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::data::{Dataset, Vocabulary};
use monolayer::fs::{replace_file, replace_files};
use monolayer::model;
use monolayer::model::{LabelHead, Model, Words};
use monolayer::{Error, Result};
use serde_json::json;

use crate::checkpoint::{self, Progress};
use crate::engine::{Diverged, Engine, Parameters, Times};
use crate::export;
use crate::metrics::{Dev, Metrics, entity_scores};
use crate::options::{Dtype, Options};
use crate::team;
use crate::training_data::{self, Names, Packed, Source};

/// What to train on, how, and where the result goes.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// What is trained on, with labels in the scheme of the options.
    pub source: Source<'a>,
    /// The dev set, likewise.
    pub dev: Option<&'a Dataset>,
    /// The options.
    pub options: &'a Options,
    /// The training directory.
    pub out: &'a Path,
    /// Tensors that are not trained.
    pub fixed: &'a [Fixed],
}

/// A tensor (any but the embedding) that keeps its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixed {
    /// Its name in a model file.
    pub name: String,
    /// Its numbers; those of `w_o` as `[heads * head_size, d]`.
    pub numbers: Vec<f64>,
}

/// What happens during a run. The listener may stop it.
#[derive(Debug)]
pub enum Event<'a> {
    /// A step was done.
    Step(&'a Now),
    /// The model was evaluated, and a checkpoint written.
    Evaluated(&'a Metrics),
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Now {
    /// The epoch, from 1.
    pub epoch: usize,
    /// All epochs.
    pub epochs: usize,
    /// Steps of this epoch done.
    pub step: usize,
    /// Steps of an epoch.
    pub steps: usize,
    /// The mean loss of this epoch so far.
    pub loss: f64,
    /// The share of right tokens of this epoch so far; none for vectors.
    pub accuracy: Option<f64>,
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// All epochs are done.
    Done,
    /// The listener stopped it; it can be resumed.
    Stopped,
    /// The numbers went out of bounds; the last checkpoint is still there.
    Diverged(Diverged),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Why it ended.
    pub end: End,
    /// How far it came.
    pub progress: Progress,
    /// Trained numbers.
    pub parameters: usize,
    /// Tokens of the dev set with words and labels that the training data does not have.
    pub unknown: [usize; 2],
    /// Whether the directory holds a model: all but those with layer norm.
    pub model: bool,
    /// Where the time of the fastest epoch went.
    pub fastest: Times,
}

/// Who hears of every step and evaluation. It is called on a thread of the pool.
pub type Listener<'a> = dyn FnMut(Event) -> ControlFlow<()> + Send + 'a;

/// Trains; with `resume`, from the checkpoint in the training directory on. `listen` hears of every step.
pub fn train(job: &Job, resume: bool, listen: &mut Listener) -> Result<Report> {
    // The whole run on threads of the pool: a thread outside would have to be woken after every step, and the pool's after it.
    rayon::scope(|_| match job.options.dtype {
        Dtype::F32 => Run::<f32>::new(job, resume)?.go(listen),
        Dtype::F64 => Run::<f64>::new(job, resume)?.go(listen),
    })
}

/// A run in one precision.
struct Run<'a, R> {
    job: &'a Job<'a>,
    packed: Packed<R>,
    names: Names,
    dev: Option<Packed<R>>,
    unknown: [usize; 2],
    engine: Engine<R>,
    progress: Progress,
    /// Whether the listener wants an end.
    stop: bool,
    /// Where the time of the fastest epoch went.
    fastest: Times,
}

impl<'a, R: Real> Run<'a, R> {
    fn new(job: &'a Job<'a>, resume: bool) -> Result<Self> {
        let options = job.options;
        let (packed, names) = training_data::pack::<R>(job.source, options.seed)?;
        let dimension = training_data::dimension(job.source);
        let longest = packed.longest().max(job.dev.map_or(0, Dataset::longest));
        let count = |names: &Option<Vocabulary>| names.as_ref().map(Vocabulary::len);
        let architecture = options.architecture(count(&names.words), dimension, count(&names.labels), longest)?;
        let d = architecture.dim;
        let translated = job.dev.map(|dev| names.translate(dev, d)).transpose()?;
        let (dev, unknown) = translated.map_or((None, [0; 2]), |(packed, unknown)| (Some(packed), unknown));
        let data = match job.source {
            Source::Data(data) => data.hash(),
            Source::Function(function) => format!("{} at length {}", function.text, function.length),
        };
        let mut engine = Engine::new(architecture, options.optimizer(), options.clip, options.seed)
            .with_dense_embedding(options.dense_embedding);
        for fixed in job.fixed {
            let numbers: Vec<R> = fixed.numbers.iter().map(|&x| R::from_f64(x)).collect();
            engine.set(&fixed.name, &numbers)?;
        }
        let frozen: Vec<String> = job.fixed.iter().map(|fixed| fixed.name.clone()).collect();
        engine = engine.with_frozen(&frozen);
        let mut progress = Progress::new(options.clone(), data);
        if resume {
            let found = Progress::read(job.out)?;
            if found.data != progress.data {
                let help = "resume with the data that the run was started with";
                return Err(Error::model(job.out.join(checkpoint::FILE), "it was trained on other data", help));
            }
            let state = checkpoint::read_state(job.out, engine.architecture(), found.steps)?;
            engine.restore(state);
            progress = Progress { options: options.clone(), ..found };
        }
        let fastest = Times::default();
        let run = Self { job, packed, names, dev, unknown, engine, progress, stop: false, fastest };
        if !resume {
            run.claim_directory()?;
        }
        Ok(run)
    }

    fn go(mut self, listen: &mut Listener) -> Result<Report> {
        while !self.progress.finished() {
            let end = team::with_helpers(|| self.epoch(listen));
            if end == End::Stopped {
                return self.leave();
            }
            if end != End::Done {
                return Ok(self.report(end));
            }
            let every = self.job.options.eval_every;
            let due = every > 0 && self.progress.epoch.is_multiple_of(every);
            if (due || self.progress.finished())
                && let Some(diverged) = self.evaluate(listen)?
            {
                return Ok(self.report(End::Diverged(diverged)));
            }
            if self.stop && !self.progress.finished() {
                return self.leave();
            }
        }
        if self.progress.history.last().is_none_or(|last| last.epoch != self.progress.epoch)
            && let Some(diverged) = self.evaluate(listen)?
        {
            return Ok(self.report(End::Diverged(diverged)));
        }
        Ok(self.report(End::Done))
    }

    /// Stops, with a checkpoint to go on from.
    fn leave(mut self) -> Result<Report> {
        let start = Instant::now();
        let snapshot = self.snapshot();
        if let Err(diverged) = check_finite(&snapshot) {
            return Ok(self.report(End::Diverged(diverged)));
        }
        self.progress.seconds.evaluation += start.elapsed().as_secs_f64();
        self.save(&snapshot)?;
        Ok(self.report(End::Stopped))
    }

    fn report(self, end: End) -> Report {
        Report {
            end,
            parameters: self.engine.architecture().parameters(),
            unknown: self.unknown,
            model: !self.job.options.layer_norm,
            fastest: self.fastest,
            progress: self.progress,
        }
    }

    /// The rest of an epoch, which is [`End::Done`] when it is.
    fn epoch(&mut self, listen: &mut Listener) -> End {
        let options = self.job.options;
        let epoch = self.progress.epoch + 1;
        let start = Instant::now();
        let whole = self.progress.step == 0;
        let fresh = match self.job.source {
            Source::Function(function) => Some(function.sample(options.seed, epoch)),
            Source::Data(_) if options.word_dropout > 0.0 && self.names.words.is_some() => {
                Some(self.names.drop_words(&self.packed, options.word_dropout, options.seed, epoch))
            }
            Source::Data(_) => None,
        };
        let packed = fresh.as_ref().unwrap_or(&self.packed);
        let order = training_data::order(options.seed, epoch, packed.sequences());
        let steps = order.len().div_ceil(options.batch);
        let (mut batch, mut chosen) = (Packed::default(), Vec::new());
        for sequences in order.chunks(options.batch).skip(self.progress.step) {
            chosen.clear();
            chosen.extend_from_slice(sequences);
            packed.balance(&mut chosen);
            packed.gather(&chosen, self.engine.architecture().dim, &mut batch);
            let rate = options.rate_at(self.engine.steps(), (steps * options.epochs) as u64);
            let step = match self.engine.step(&batch.batch(), rate) {
                Ok(step) => step,
                Err(diverged) => return End::Diverged(diverged),
            };
            self.progress.add(&step, self.engine.steps());
            let progress = &mut self.progress;
            let labeled = progress.labeled.max(1) as f64;
            let now = Now {
                epoch,
                epochs: options.epochs,
                step: progress.step,
                steps,
                loss: progress.loss / labeled,
                accuracy: self.names.labels.is_some().then(|| progress.right as f64 / labeled),
            };
            self.stop |= listen(Event::Step(&now)).is_break();
            // The last step is followed by the end of the epoch, which is a better place to stop at.
            if self.stop && progress.step < steps {
                self.clock(start);
                return End::Stopped;
            }
        }
        let (seconds, parts) = self.clock(start);
        let progress = &mut self.progress;
        let rate = progress.tokens as f64 / seconds;
        if whole && progress.tokens_per_second.is_none_or(|fastest| rate > fastest) {
            progress.tokens_per_second = Some(rate);
            self.fastest = parts;
        }
        progress.last_loss = Some(progress.loss / progress.labeled.max(1) as f64);
        (progress.epoch, progress.step, progress.loss) = (epoch, 0, 0.0);
        (progress.right, progress.tokens, progress.labeled) = (0, 0, 0);
        End::Done
    }

    /// Adds the time since `start` to that of training; returns it and its parts.
    fn clock(&mut self, start: Instant) -> (f64, Times) {
        let seconds = start.elapsed().as_secs_f64();
        self.progress.seconds.training += seconds;
        let parts = self.engine.take_times();
        self.progress.seconds.parts.add(&parts);
        (seconds, parts)
    }

    /// A copy with all embedding rows up to date, that for unknown words too.
    fn snapshot(&self) -> Engine<R> {
        let options = self.job.options;
        let (architecture, optimizer) = (self.engine.architecture().clone(), options.optimizer());
        let state = self.engine.state();
        let mut copy = Engine::from_parameters(architecture.clone(), optimizer, None, state.parameters.clone());
        copy.restore(state);
        copy.catch_up();
        if self.names.words.is_none() || options.word_dropout > 0.0 || self.names.unknown_in_data {
            return copy;
        }
        let mut parameters = copy.parameters().clone();
        self.names.set_unknown_row(&mut parameters.embedding, architecture.dim);
        Engine::from_parameters(architecture, optimizer, None, parameters)
    }

    /// Evaluates a copy and writes it, with a checkpoint; or finds that its numbers are out of bounds.
    fn evaluate(&mut self, listen: &mut Listener) -> Result<Option<Diverged>> {
        let start = Instant::now();
        let snapshot = self.snapshot();
        if let Err(diverged) = check_finite(&snapshot) {
            return Ok(Some(diverged));
        }
        let train = snapshot.evaluate(&self.packed.batch());
        if !train.loss.is_finite() {
            let what = format!("a mean loss of {} over the training set", train.loss);
            return Ok(Some(Diverged { step: self.progress.steps, what, tensor: "the head".into() }));
        }
        let right = train.labels.iter().zip(&self.packed.labels).filter(|(found, own)| Some(**found) == **own).count();
        let labels = self.names.labels.is_some();
        let dev = self.dev.as_ref().map(|dev| self.evaluate_dev(&snapshot, dev));
        self.progress.seconds.evaluation += start.elapsed().as_secs_f64();
        let metrics = Metrics {
            epoch: self.progress.epoch,
            steps: self.progress.steps,
            loss: self.progress.last_loss,
            train_loss: train.loss,
            train_accuracy: labels.then(|| right as f64 / self.packed.labeled() as f64),
            sequences_right: labels.then(|| self.packed.sequences_right(&train.labels)),
            firing: train.firing,
            dev,
            tokens_per_second: self.progress.tokens_per_second,
            seconds: self.progress.seconds,
        };
        self.progress.history.push(metrics.clone());
        self.save(&snapshot)?;
        self.stop |= listen(Event::Evaluated(&metrics)).is_break();
        Ok(None)
    }

    fn evaluate_dev(&self, snapshot: &Engine<R>, packed: &Packed<R>) -> Dev {
        let result = snapshot.evaluate(&packed.batch());
        let mut report =
            Dev { loss: None, accuracy: None, precision: None, recall: None, f1: None, f1_by_type: [].into() };
        let (Some(labels), Some(dev)) = (&self.names.labels, self.job.dev) else {
            report.loss = Some(result.loss);
            return report;
        };
        // By name: labels that the training data does not have are never right.
        let right = (0..packed.tokens()).filter(|&t| dev.label(t) == Some(labels.name(result.labels[t]))).count();
        report.accuracy = Some(right as f64 / packed.labeled() as f64).filter(|share| share.is_finite());
        if let Some(scores) = entity_scores(dev, &result.labels, labels.names()) {
            report.precision = Some(scores.all.precision());
            report.recall = Some(scores.all.recall());
            report.f1 = Some(scores.all.f1());
            report.f1_by_type = scores.by_type.iter().map(|(kind, counts)| (kind.clone(), counts.f1())).collect();
        }
        report
    }

    /// The model that the numbers are; none for layer norm, which a model directory has no place for.
    fn model(&self, parameters: &Parameters<R>) -> Option<Model<R>> {
        let architecture = self.engine.architecture();
        if architecture.layer_norm {
            return None;
        }
        let words = self.names.words.as_ref().map(|vocabulary| Words {
            vocabulary: vocabulary.clone(),
            embedding: Matrix::new(vocabulary.len(), architecture.dim, parameters.embedding.clone()),
            start: None,
        });
        let head = export::head(architecture, parameters).zip(self.names.labels.as_ref());
        let head = head.map(|((weight, bias), names)| LabelHead { labels: names.names().to_vec(), weight, bias });
        let (data_hash, function) = match self.job.source {
            Source::Data(_) => (Some(self.progress.data.clone()), None),
            Source::Function(_) => (None, Some(self.progress.data.clone())),
        };
        let source = model::Source::Train {
            options: json!(self.job.options),
            data_hash,
            function,
            epochs: self.progress.epoch,
            steps: self.progress.steps,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Some(Model {
            words,
            positions: export::positions(architecture, parameters),
            transformer: export::transformer(architecture, parameters),
            head,
            outputs: None,
            source,
        })
    }

    /// Makes the training directory, with the model before its first step. A model there already is replaced, but not a run
    /// that could go on.
    fn claim_directory(&self) -> Result<()> {
        let out = self.job.out;
        let started = out.join(checkpoint::FILE).exists();
        if started && !Progress::read(out).is_ok_and(|progress| progress.finished()) {
            let help = format!("go on with `resume` {}, or remove it, or choose another directory", out.display());
            return Err(Error::model(out, "a run in it is not finished", help));
        }
        let snapshot = self.snapshot();
        let checkpoint = checkpoint::to_bytes(&self.progress, &self.engine.state())?;
        let more = |dir: &Path| {
            replace_file(dir.join(checkpoint::FILE), &checkpoint)?;
            replace_file(dir.join("metrics.jsonl"), b"")
        };
        if let Some(model) = self.model(snapshot.parameters()) {
            return model::directory::write(&model, out, more);
        }
        if out.join("config.json").exists() {
            return Err(Error::model(out, "a model is there, and layer norm makes none", "choose another directory"));
        }
        std::fs::create_dir_all(out).map_err(|e| Error::io(out, e))?;
        more(out)
    }

    /// Writes checkpoint, model and metrics, each file whole or not at all. The checkpoint comes first: whatever stops the
    /// program then, the run can go on from it and writes the others again.
    fn save(&mut self, snapshot: &Engine<R>) -> Result<()> {
        let start = Instant::now();
        let out = self.job.out;
        replace_file(out.join(checkpoint::FILE), &checkpoint::to_bytes(&self.progress, &self.engine.state())?)?;
        if let Some(model) = self.model(snapshot.parameters()) {
            let names = ["vocabulary.json", "model.safetensors", "config.json"];
            replace_files(out, &names, |new| model::directory::write(&model, new, |_| Ok(())))?;
        }
        let lines = self.progress.history.iter().map(|line| serde_json::to_string(line).expect("plain data") + "\n");
        replace_file(out.join("metrics.jsonl"), lines.collect::<String>().as_bytes())?;
        self.progress.seconds.evaluation += start.elapsed().as_secs_f64();
        Ok(())
    }
}

/// Finds the first parameter that is not finite.
fn check_finite<R: Real>(engine: &Engine<R>) -> std::result::Result<(), Diverged> {
    let bad = |list: &[R]| list.iter().position(|x| !x.finite());
    let parameters = engine.parameters();
    let tensor = match (bad(&parameters.dense), bad(&parameters.embedding)) {
        (Some(i), _) => engine.architecture().layout().tensor_at(i).name.clone(),
        (None, Some(_)) => "embedding.weight".to_owned(),
        (None, None) => return Ok(()),
    };
    Err(Diverged { step: engine.steps(), what: "a number that is not finite".into(), tensor })
}
