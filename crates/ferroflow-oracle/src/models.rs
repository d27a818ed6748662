//! Models that GPU training is measured by. The data is made up and stays on the device.

use ferroflow::prelude::*;
use ferroflow_core::{Gpu, err};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A model whose graph is complete.
pub struct TrainedModel {
    graph: Graph,
    loss: Output,
    step: Operation,
}

/// The names of the models.
pub const MODELS: [&str; 1] = ["mlp"];

impl TrainedModel {
    /// The model `name`, on `device`.
    pub fn build(name: &str, device: &str) -> Result<TrainedModel> {
        match name {
            "mlp" => Ok(mlp(device)),
            _ => Err(err!(InvalidArgument, "there is no model '{name}': {}", MODELS.join(", "))),
        }
    }

    /// A session with initial values.
    pub fn session(&self, gpus: &[Arc<dyn Gpu>]) -> Result<Session> {
        let options = LocalOptions { gpus: gpus.to_vec(), ..LocalOptions::default() };
        let init = self.graph.global_initializer();
        let session = Session::local_with(&self.graph, &options)?;
        session.run(&init)?;
        Ok(session)
    }

    /// The losses of the first steps.
    pub fn losses(&self, session: &Session, steps: usize) -> Result<Vec<f32>> {
        let one = |_| Ok(session.run((self.loss.scalar::<f32>(), &self.step))?.0);
        (0..steps).map(one).collect()
    }

    /// Steps a second with the loss fetched in every step, and in every 50th.
    pub fn measure(&self, gpu: &Arc<dyn Gpu>, time: Duration) -> Result<Json> {
        let began = Instant::now();
        let session = self.session(std::slice::from_ref(gpu))?;
        let first = self.losses(&session, 1)?[0];
        let first_step_s = began.elapsed().as_secs_f64();
        self.losses(&session, 20)?;
        let mut rates = Vec::new();
        let mut last = first;
        for every in [1, 50] {
            let (began, mut steps) = (Instant::now(), 0);
            while began.elapsed() < time {
                for i in 1..=50 {
                    if i % every == 0 {
                        last = self.losses(&session, 1)?[0];
                    } else {
                        session.run(&self.step)?;
                    }
                }
                steps += 50;
            }
            gpu.synchronize()?;
            rates.push(f64::from(steps) / began.elapsed().as_secs_f64());
        }
        Ok(json!({"impl": "ferroflow", "steps_s_fetch_each": rates[0],
            "steps_s_fetch_50th": rates[1], "first_step_s": first_step_s, "first_loss": first,
            "last_loss": last, "peak_mb": gpu.memory().peak >> 20}))
    }
}

/// 784-512-512-10, relu, softmax cross entropy, batch 128, gradient descent.
fn mlp(device: &str) -> TrainedModel {
    let graph = Graph::new();
    graph.set_seed(1);
    let g = &graph;
    let (loss, step) = g.device(device, || {
        let x = g.constant(noise(&[128, 784]));
        let labels: Vec<i64> = (0..128).map(|i| i * 7 % 10).collect();
        let labels = g.constant(Tensor::vector(&labels));
        let hidden = layers::Dense::new("a", 512).activation(Output::relu).apply(&x);
        let hidden = layers::Dense::new("b", 512).activation(Output::relu).apply(&hidden);
        let logits = layers::Dense::new("c", 10).apply(&hidden);
        let loss = losses::sparse_softmax_cross_entropy(&labels, &logits);
        let step = Sgd::new(0.1).minimize(&loss);
        (loss, step)
    });
    TrainedModel { graph, loss, step }
}

/// Numbers around 0 that are the same in every run.
fn noise(dims: &[usize]) -> Tensor {
    let mut state = 1u64;
    let n = dims.iter().product();
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // Twelve uniform numbers are nearly a normal one.
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let values: Vec<f32> = (0..n).map(|_| (0..12).map(|_| next()).sum::<f32>() - 6.0).collect();
    Tensor::from_slice(Shape::from(dims), &values).expect("as many values as the shape has")
}
