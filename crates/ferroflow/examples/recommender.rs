//! A recommender: each example has eight features, such as the user and the items seen last, and
//! each feature has a row of a large table. The rows go through dense layers, which predict a
//! rating.
//!
//! The table is on parameter servers, which send the rows of a batch and apply their gradients. The
//! dense layers are in every rank, and their gradients are all-reduced.
//!
//!     cargo build --release --example recommender
//!     ferroflow run --ps 2 -np 2 -- target/release/examples/recommender --rows 100000
//!     ferroflow run --ps 2 -np 2 --min-np 1 -- target/release/examples/recommender --out out
//!
//! `--layout` compares. `hybrid` is the layout above. `ps` has all variables on the parameter
//! servers. `gather` and `dense` have all of them in every rank: `gather` sends the rows that a
//! rank has used to all others, `dense` all-reduces the gradient of the whole table.

use ferroflow::graph::PartitionedVariable;
use ferroflow::hybrid::{self, Hybrid, HybridSession, HybridUpdate, PsMode};
use ferroflow::prelude::*;
use std::time::Instant;

const FEATURES: usize = 8;

struct Flags {
    rows: usize,
    width: usize,
    hidden: usize,
    batch: usize,
    steps: i64,
    mode: PsMode,
    layout: String,
    out: Option<String>,
}

fn invalid(text: String) -> Error {
    Error::new(Code::InvalidArgument, text)
}

impl Flags {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Flags> {
        let mut flags = Flags {
            rows: 500,
            width: 8,
            hidden: 32,
            batch: 128,
            steps: 400,
            mode: PsMode::Async,
            layout: "hybrid".into(),
            out: None,
        };
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| invalid(format!("{name} needs a value")))?;
            let number = || value.parse().map_err(|_| invalid(format!("{name} {value}: a number")));
            match name.as_str() {
                "--rows" => flags.rows = number()?,
                "--width" => flags.width = number()?,
                "--hidden" => flags.hidden = number()?,
                "--batch" => flags.batch = number()?,
                "--steps" => flags.steps = number()? as i64,
                "--layout" => flags.layout = value,
                "--out" => flags.out = Some(value),
                "--mode" => {
                    flags.mode = match value.as_str() {
                        "async" => PsMode::Async,
                        "sync" => PsMode::Sync,
                        "backup" => PsMode::Backup(1),
                        _ => return Err(invalid(format!("--mode {value}: async, sync or backup"))),
                    }
                }
                _ => return Err(invalid(format!("there is no flag {name}"))),
            }
        }
        Ok(flags)
    }
}

/// Examples: small ids are frequent, as popular items are. The rating is the sum of a hidden
/// property of each id.
fn examples(flags: &Flags, random: &mut fastrand::Rng) -> Result<(Tensor, Tensor)> {
    let taste = |id: i64| (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63;
    let (mut ids, mut ratings) = (Vec::new(), Vec::new());
    for _ in 0..flags.batch {
        let one = [(); FEATURES].map(|()| (random.f64().powi(3) * flags.rows as f64) as i64);
        let liked: u64 = one.iter().map(|id| taste(*id)).sum();
        ratings.push(0.5 * liked as f32 - 0.25 * FEATURES as f32);
        ids.extend(one);
    }
    let ratings = Tensor::from_slice([flags.batch, 1], &ratings)?;
    Ok((Tensor::from_slice([flags.batch, FEATURES], &ids)?, ratings))
}

struct Model {
    ids: Output,
    rating: Output,
    loss: Output,
    train: HybridUpdate,
}

fn build(job: &Hybrid, g: &Graph, flags: &Flags) -> Model {
    let ids = g.placeholder::<i64>("ids", [None, Some(FEATURES)]);
    let rating = g.placeholder::<f32>("rating", [None, Some(1)]);
    let limit = 0.5 / (flags.width as f32).sqrt();
    let values = init::uniform([flags.rows, flags.width], -limit, limit);
    let is_reduced = matches!(flags.layout.as_str(), "gather" | "dense");
    let table: PartitionedVariable = match is_reduced {
        true => g.partitioned_variable("table", values, 1),
        false => job.table(g, "table", values),
    };
    let rows = job.lookup(&table, &ids).reshape([None, Some(FEATURES * flags.width)]);
    let dense = || {
        let hidden = layers::Dense::new("hidden1", flags.hidden).activation(Output::relu);
        let hidden2 = layers::Dense::new("hidden2", flags.hidden).activation(Output::relu);
        layers::Dense::new("rating", 1).apply(&hidden2.apply(&hidden.apply(&rows)))
    };
    let predicted = if flags.layout == "ps" { job.sparse(g, dense) } else { dense() };
    let loss = losses::mean_squared_error(&rating, &predicted);
    let mut optimizer = job.optimizer(Adagrad::new(0.2)).mode(flags.mode);
    if flags.layout == "dense" {
        optimizer = optimizer.sparse_as_dense();
    }
    let train = optimizer.minimize(&loss, &g.global_step());
    Model { ids, rating, loss, train }
}

fn train(
    session: &mut HybridSession,
    model: &Model,
    flags: &Flags,
    job: &Hybrid,
) -> Result<(f32, f32)> {
    let (mut first, mut last) = (f32::NAN, f32::NAN);
    let mut started = Instant::now();
    let mut seconds = Vec::new();
    while session.global_step() < flags.steps {
        let seed = session.global_step() as u64 * 1000 + job.rank() as u64;
        let (ids, rating) = examples(flags, &mut fastrand::Rng::with_seed(seed))?;
        let feeds = [(&model.ids, ids), (&model.rating, rating)];
        last = session.train_fed(feeds, model.loss.scalar::<f32>())?;
        first = if first.is_nan() { last } else { first };
        seconds.push(started.elapsed().as_secs_f64());
        started = Instant::now();
        let step = session.global_step();
        if job.rank() == 0 && (step % (flags.steps / 10).max(1) == 0 || step == flags.steps) {
            println!("step {step}  loss {last:.4}  ({} ranks, {} ps)", job.size(), job.ps().len());
        }
    }
    // The first steps are slower, because parts of the graph are compiled then.
    let mut steady = seconds.split_off(seconds.len().min(2));
    steady.sort_by(f64::total_cmp);
    if let (Some(median), 0) = (steady.get(steady.len() / 2), job.rank()) {
        let (least, most) = (steady[0], steady[steady.len() - 1]);
        let layout = &flags.layout;
        println!("{layout}: {median:.4} s a step (median; {least:.4} to {most:.4})");
    }
    Ok((first, last))
}

pub fn main() -> Result<()> {
    let flags = Flags::parse(std::env::args().skip(1))?;
    let job = hybrid::init()?;
    let g = job.graph();
    g.set_seed(1);
    let model = job.scope(&g, || build(&job, &g, &flags));
    let mut training = job.training(&g, &model.train);
    if let Some(out) = &flags.out {
        training = training.dir(out).save_steps(50);
    }
    let mut session = training.open()?;
    let (first, last) = train(&mut session, &model, &flags, &job)?;
    let recoveries = session.recoveries();
    let stale = session.stale_gradients()?;
    let saved = session.close()?;
    if job.rank() == 0 {
        println!("loss {first:.4} -> {last:.4}, {} recoveries, {stale} stale", recoveries.len());
        saved.iter().for_each(|path| println!("checkpoint {path}"));
    }
    if flags.steps >= 400 && !first.is_nan() {
        assert!(last < 0.5 * first, "{first} -> {last}");
    }
    Ok(())
}
