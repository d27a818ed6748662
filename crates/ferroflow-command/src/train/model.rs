//! Builds the models' graphs and provides their batches.

use super::Model;
use super::data::{Draw, Ratings, line};
use super::images::{ImageSet, Size};
use ferroflow::prelude::*;
use ferroflow::train::{GradAndVar, SyncTraining};
use std::path::Path;
use std::time::Duration;

/// Time that a synchronous step waits for a worker before the others continue without it.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(5);

/// A model in a graph.
pub struct Built {
    pub input: Output,
    pub target: Output,
    pub loss: Output,
    /// Values to show beside the loss.
    pub shown: Vec<(&'static str, Output)>,
    /// The score on test data, if there is any.
    pub score: Option<(&'static str, Output)>,
}

/// The source of batches.
pub enum Source {
    Line,
    Images(Box<ImageSet>),
    Ratings(Ratings),
}

/// Examples per evaluation batch, which bounds the memory of activations.
const TEST_BATCH: usize = 500;

impl Source {
    pub fn of(model: Model, data: Option<&Path>, is_synthetic: bool) -> Result<Source> {
        Ok(match model {
            Model::Linear => Source::Line,
            Model::Mlp | Model::Cnn if is_synthetic => {
                Source::Images(Box::new(ImageSet::synthetic()))
            }
            Model::Mlp | Model::Cnn => Source::Images(Box::new(ImageSet::load(data)?)),
            Model::Embedding => Source::Ratings(Ratings::new()),
        })
    }

    pub fn batch(&self, draw: &mut Draw, n: usize) -> Result<(Tensor, Tensor)> {
        match self {
            Source::Line => Ok(line(draw, n)),
            Source::Images(set) => set.train.batch(draw, n),
            Source::Ratings(ratings) => ratings.batch(draw, n),
        }
    }

    /// Batches of test data.
    pub fn test(&self) -> Box<dyn Iterator<Item = Result<(Tensor, Tensor)>> + '_> {
        let made_up = &mut Draw::new(u64::MAX);
        match self {
            Source::Line => Box::new(std::iter::once(Ok(line(made_up, 1000)))),
            Source::Images(set) => Box::new(set.test.in_turn(TEST_BATCH)),
            Source::Ratings(ratings) => Box::new(std::iter::once(ratings.batch(made_up, 2000))),
        }
    }
}

/// Adds a model of this data to a graph.
pub fn build(model: Model, source: &Source, g: &Graph) -> Built {
    match source {
        Source::Line => linear(g),
        Source::Images(set) => images(model, set.train.size, g),
        Source::Ratings(_) => embedding(g),
    }
}

fn linear(g: &Graph) -> Built {
    let x = g.placeholder::<f32>("x", [None]);
    let y = g.placeholder::<f32>("y", [None]);
    let w = g.get_variable("weight", 0.0);
    let b = g.get_variable("bias", 0.0);
    let loss = losses::mean_squared_error(&y, &(&x * &w + &b));
    Built {
        input: x,
        target: y,
        loss: loss.clone(),
        shown: vec![("W", (*w).clone()), ("b", (*b).clone())],
        score: Some(("test loss", loss)),
    }
}

fn images(model: Model, size: Size, g: &Graph) -> Built {
    let x = g.placeholder::<f32>("image", [None, Some(size.pixels())]);
    let y = g.placeholder::<i64>("class", [None]);
    // The digits inside the command are small images.
    let width = if size.pixels() <= 64 { 16 } else { 32 };
    let hidden = match model {
        Model::Cnn => {
            let [height, across, channels] = [size.height, size.width, size.channels].map(Some);
            let image = x.reshape([None, height, across, channels]);
            let first = layers::Conv2d::new("conv1", width, 3).activation(Output::relu);
            let first = first.apply(&image).max_pool(2, 2, Padding::Same);
            let second = layers::Conv2d::new("conv2", 2 * width, 3).activation(Output::relu);
            second.apply(&first).max_pool(2, 2, Padding::Same).flatten()
        }
        _ => x.clone(),
    };
    let hidden = layers::Dense::new("hidden", 4 * width).activation(Output::relu).apply(&hidden);
    let logits = layers::Dense::new("logits", 10).apply(&hidden);
    let loss = losses::sparse_softmax_cross_entropy(&y, &logits);
    let accuracy = losses::accuracy(&y, &logits);
    Built {
        input: x,
        target: y,
        loss,
        shown: vec![("accuracy", accuracy.clone())],
        score: Some(("test accuracy", accuracy)),
    }
}

fn embedding(g: &Graph) -> Built {
    const WIDTH: usize = 8;
    let pairs = g.placeholder::<i64>("user_and_item", [None, Some(2)]);
    let rating = g.placeholder::<f32>("rating", [None]);
    let (user, item) = (pairs.slice(&[0, 0], &[-1, 1]), pairs.slice(&[0, 1], &[-1, 1]));
    let (user, item) = (user.reshape([None]), item.reshape([None]));
    let table =
        |name: &str, rows: usize| g.get_variable(name, init::normal([rows, WIDTH], 0.0, 0.3));
    let users = table("users", Ratings::USERS);
    let items = table("items", Ratings::ITEMS);
    let mean = g.get_variable("mean", 0.0);
    let taste = (users.gather(&user) * items.gather(&item)).sum(&[1]);
    let loss = losses::mean_squared_error(&rating, &(taste + &mean));
    Built {
        input: pairs,
        target: rating,
        loss: loss.clone(),
        shown: vec![("mean", (*mean).clone())],
        score: Some(("test loss", loss)),
    }
}

/// The training op: alone or asynchronous, or synchronous with other workers.
pub enum Trainer {
    Alone(Operation),
    InStep(Box<SyncTraining>),
}

/// The workers of synchronous training.
#[derive(Clone, Copy)]
pub struct Replicas {
    pub workers: usize,
    /// The number of backup workers, for which a step does not wait.
    pub backup: usize,
}

/// Adds training to a graph: synchronous with `replicas`, alone or asynchronous without. `scales`
/// scales the loss, for 16-bit floats.
pub fn trainer(
    model: Model,
    rate: f32,
    loss: &Output,
    replicas: Option<Replicas>,
    scales: bool,
) -> Trainer {
    let optimizer = optimizer(model, rate);
    match scales {
        true => with(LossScale::dynamic(optimizer), loss, replicas),
        false => with(optimizer, loss, replicas),
    }
}

/// The optimizer of a model.
pub fn optimizer(model: Model, rate: f32) -> Box<dyn Optimizer> {
    match model {
        Model::Linear => Box::new(Sgd::new(rate)),
        Model::Mlp | Model::Cnn => Box::new(Adam::new(rate)),
        Model::Embedding => Box::new(Adagrad::new(rate)),
    }
}

fn with(optimizer: impl Optimizer, loss: &Output, replicas: Option<Replicas>) -> Trainer {
    let g = loss.graph();
    let step = g.global_step();
    let gradients: Vec<GradAndVar> = optimizer.compute_gradients(loss, &g.trainable_variables());
    match replicas {
        None => Trainer::Alone(optimizer.apply_gradients(g, &gradients, Some(&step))),
        Some(Replicas { workers, backup }) => {
            let sync = SyncReplicas::new(optimizer, workers.saturating_sub(backup), workers);
            let sync = sync.replica_timeout(REPLICA_TIMEOUT);
            Trainer::InStep(Box::new(sync.apply_gradients(g, &gradients, &step)))
        }
    }
}
