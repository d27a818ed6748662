//! Models that GPU training is measured by. The data is made up and stays on the device.

use ferroflow::ops;
use ferroflow::prelude::*;
use ferroflow::train::init;
use ferroflow_core::{Gpu, bail, err};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A model whose graph is complete.
pub struct TrainedModel {
    name: String,
    batch: usize,
    graph: Graph,
    loss: Output,
    step: Operation,
}

/// The names of the models.
pub const MODELS: [&str; 4] = ["mlp", "cnn", "resnet50", "block"];

impl TrainedModel {
    /// The model `name`, on `device`, with a batch of its usual size.
    pub fn build(name: &str, device: &str) -> Result<TrainedModel> {
        TrainedModel::with_batch(name, device, None)
    }

    /// The model `name`, on `device`.
    pub fn with_batch(name: &str, device: &str, batch: Option<usize>) -> Result<TrainedModel> {
        type Make = fn(&Graph, usize) -> (Output, Operation);
        let (usual, make): (usize, Make) = match name {
            "mlp" => (128, mlp),
            "cnn" => (64, cnn),
            "resnet50" => (256, resnet50),
            "block" => (32, block),
            _ => bail!(InvalidArgument, "there is no model '{name}': {}", MODELS.join(", ")),
        };
        let batch = batch.unwrap_or(usual);
        let graph = Graph::new();
        graph.set_seed(1);
        let (loss, step) = graph.device(device, || make(&graph, batch));
        Ok(TrainedModel { name: name.into(), batch, graph, loss, step })
    }

    /// Writes the weights and the data to a folder, then the losses of the first steps, for
    /// bench/gpu/compare_losses.py.
    pub fn export(&self, session: &Session, folder: &Path, steps: usize) -> Result<Json> {
        let failed = |path: &Path, e| err!(Unknown, "{}: {e}", path.display());
        std::fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
        let write = |file: String, name: &str, value: &Tensor| -> Result<Json> {
            let path = folder.join(&file);
            std::fs::write(&path, value.bytes()?).map_err(|e| failed(&path, e))?;
            Ok(json!({"name": name, "file": file, "shape": value.shape().dims()}))
        };
        let mut variables = Vec::new();
        for (i, variable) in self.graph.trainable_variables().iter().enumerate() {
            let value: Tensor = session.run(&**variable)?;
            variables.push(write(format!("variable{i}.f32"), &variable.name(), &value)?);
        }
        let shapes: &[&[usize]] = match self.name.as_str() {
            "mlp" => &[&[self.batch, 784]],
            "cnn" => &[&[self.batch, 28, 28, 1]],
            "resnet50" => &[&[self.batch, 224, 224, 3]],
            _ => &[&[self.batch * LENGTH, WIDTH], &[WIDTH, self.batch * LENGTH]],
        };
        let inputs = shapes.iter().enumerate();
        let inputs = inputs.map(|(i, shape)| write(format!("input{i}.f32"), "", &noise(shape)));
        let inputs = inputs.collect::<Result<Vec<Json>>>()?;
        let losses = self.losses(session, steps)?;
        let line = json!({"model": self.name, "batch": self.batch, "losses": losses,
            "variables": variables, "inputs": inputs});
        let path = folder.join("losses.json");
        std::fs::write(&path, line.to_string()).map_err(|e| failed(&path, e))?;
        Ok(json!({"model": self.name, "losses": losses}))
    }

    /// A session with initial values.
    pub fn session(&self, gpus: &[Arc<dyn Gpu>]) -> Result<Session> {
        self.session_with(&LocalOptions { gpus: gpus.to_vec(), ..LocalOptions::default() })
    }

    /// The same with these options.
    pub fn session_with(&self, options: &LocalOptions) -> Result<Session> {
        let init = self.graph.global_initializer();
        let session = Session::local_with(&self.graph, options)?;
        session.run(&init)?;
        Ok(session)
    }

    /// The losses of the first steps.
    pub fn losses(&self, session: &Session, steps: usize) -> Result<Vec<f32>> {
        let one = |_| Ok(session.run((self.loss.scalar::<f32>(), &self.step))?.0);
        (0..steps).map(one).collect()
    }

    /// Steps without a fetch.
    pub fn steps(&self, session: &Session, steps: usize) -> Result<()> {
        (0..steps).try_for_each(|_| session.run(&self.step).map(drop))
    }

    /// Steps a second with the loss fetched in every step, and in every 50th. If there is no time,
    /// a few steps: enough for a recording and its replays.
    pub fn measure(&self, gpu: &Arc<dyn Gpu>, time: Duration) -> Result<Json> {
        let began = Instant::now();
        let session = self.session(std::slice::from_ref(gpu))?;
        let first = self.losses(&session, 1)?[0];
        let first_step_s = began.elapsed().as_secs_f64();
        if time.is_zero() {
            let losses = self.losses(&session, 5)?;
            return Ok(json!({"impl": "ferroflow", "first_step_s": first_step_s,
                "first_loss": first, "losses": losses}));
        }
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

/// Classes of a batch.
fn labels(g: &Graph, batch: usize, classes: i64) -> Output {
    let labels: Vec<i64> = (0..batch as i64).map(|i| i * 7 % classes).collect();
    g.constant(Tensor::vector(&labels))
}

/// 784-512-512-10, relu, softmax cross entropy, gradient descent.
fn mlp(g: &Graph, batch: usize) -> (Output, Operation) {
    let x = g.constant(noise(&[batch, 784]));
    let hidden = layers::Dense::new("a", 512).activation(Output::relu).apply(&x);
    let hidden = layers::Dense::new("b", 512).activation(Output::relu).apply(&hidden);
    let logits = layers::Dense::new("c", 10).apply(&hidden);
    let loss = losses::sparse_softmax_cross_entropy(&labels(g, batch, 10), &logits);
    let step = Sgd::new(0.1).minimize(&loss);
    (loss, step)
}

/// 28x28x1, two convolutions 5x5 with pools, dense 1024, dense 10.
fn cnn(g: &Graph, batch: usize) -> (Output, Operation) {
    let x = g.constant(noise(&[batch, 28, 28, 1]));
    let conv = |name: &str, filters: usize, x: &Output| {
        let y = layers::Conv2d::new(name, filters, 5).activation(Output::relu).apply(x);
        y.max_pool(2, 2, Padding::Valid)
    };
    let y = conv("b", 64, &conv("a", 32, &x)).reshape([-1, 3136]);
    let y = layers::Dense::new("c", 1024).activation(Output::relu).apply(&y);
    let logits = layers::Dense::new("d", 10).apply(&y);
    let loss = losses::sparse_softmax_cross_entropy(&labels(g, batch, 10), &logits);
    let step = Momentum::new(0.01, 0.9).minimize(&loss);
    (loss, step)
}

/// A variable of floats, as `bfloat16`.
fn half_variable(g: &Graph, name: &str, initial: init::Initializer) -> Output {
    g.variable(name, initial).cast(DType::BFloat16)
}

/// A convolution with padding on both sides, then batch normalization.
fn conv_norm(g: &Graph, name: &str, x: &Output, sizes: [usize; 3], stride: i64) -> Output {
    let [from, filters, size] = sizes;
    let filter =
        half_variable(g, &format!("{name}/w"), init::he_normal([size, size, from, filters]));
    let pad = (size as i64 - 1) / 2;
    let paddings = [0, 0, pad, pad, pad, pad, 0, 0];
    let options = ops::Conv2DOptions { explicit_paddings: &paddings, ..Default::default() };
    let y = ops::conv2d_with(x, &filter, &[1, stride, stride, 1], "EXPLICIT", options);
    let scale = g.variable(&format!("{name}/scale"), init::ones([filters]));
    let offset = g.variable(&format!("{name}/offset"), init::zeros([filters]));
    let none = g.constant(Tensor::vector::<f32>(&[]));
    ops::fused_batch_norm_v3(&y, &scale, &offset, &none, &none).y
}

/// ResNet-50 v1.5, 224x224x3, in `bfloat16` with weights of `f32`.
fn resnet50(g: &Graph, batch: usize) -> (Output, Operation) {
    let x = g.constant(noise(&[batch, 224, 224, 3])).cast(DType::BFloat16);
    let y = conv_norm(g, "stem", &x, [3, 64, 7], 2).relu();
    let paddings = [0, 0, 1, 1, 1, 1, 0, 0];
    let options = ops::MaxPoolOptions { explicit_paddings: &paddings, ..Default::default() };
    let mut y = ops::max_pool_with(&y, &[1, 3, 3, 1], &[1, 2, 2, 1], "EXPLICIT", options);
    let mut from = 64;
    for (stage, (mid, count, stride)) in
        [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)].into_iter().enumerate()
    {
        for k in 0..count {
            let name = |part: &str| format!("stage{stage}/{k}/{part}");
            let (stride, to) = (if k == 0 { stride } else { 1 }, mid * 4);
            let short = match k {
                0 => conv_norm(g, &name("short"), &y, [from, to, 1], stride),
                _ => y.clone(),
            };
            let inner = conv_norm(g, &name("a"), &y, [from, mid, 1], 1).relu();
            let inner = conv_norm(g, &name("b"), &inner, [mid, mid, 3], stride).relu();
            let inner = conv_norm(g, &name("c"), &inner, [mid, to, 1], 1);
            y = (inner + short).relu();
            from = to;
        }
    }
    let head = half_variable(g, "head/w", init::glorot_uniform([2048, 1000]));
    let bias = g.variable("head/b", init::zeros([1000]));
    let logits = y.mean(&[1, 2]).matmul(&head).cast(DType::Float).bias_add(&bias);
    let loss = losses::sparse_softmax_cross_entropy(&labels(g, batch, 1000), &logits);
    let step = Momentum::new(0.1, 0.9).minimize(&loss);
    (loss, step)
}

/// A product with a matrix and a bias, in `bfloat16`.
fn half_dense(g: &Graph, name: &str, x: &Output, [from, to]: [usize; 2]) -> Output {
    let w = half_variable(g, &format!("{name}/w"), init::glorot_uniform([from, to]));
    let b = half_variable(g, &format!("{name}/b"), init::zeros([to]));
    x.matmul(&w).bias_add(&b)
}

/// The width and the positions of the transformer block.
const WIDTH: usize = 1024;
const LENGTH: usize = 512;

/// One pre-norm transformer block: width 1024, 16 heads, 512 positions, mean square loss.
fn block(g: &Graph, batch: usize) -> (Output, Operation) {
    const HEADS: i32 = 16;
    let length = LENGTH as i32;
    let rows = batch as i32 * length;
    let x = g.constant(noise(&[rows as usize, WIDTH]));
    let target = g.constant(noise(&[WIDTH, rows as usize])).reshape([rows, WIDTH as i32]);
    let norm = |name: &str, x: &Output| layers::layer_norm(name, x).cast(DType::BFloat16);
    let all = half_dense(g, "qkv", &norm("n1", &x), [WIDTH, 3 * WIDTH]);
    let heads: Vec<Output> = all
        .split(3, 1)
        .iter()
        .map(|t| t.reshape([batch as i32, length, HEADS, 64]).transpose(&[0, 2, 1, 3]))
        .collect();
    let scores = heads[0].matmul_with(&heads[1], false, true) * 0.125;
    let n = LENGTH;
    let mask: Vec<f32> = (0..n * n).map(|i| if i % n > i / n { -1e9 } else { 0.0 }).collect();
    let mask = Tensor::from_slice([n, n], &mask).expect("as many values as the shape has");
    let scores = scores + g.constant(mask).cast(DType::BFloat16);
    let mixed = scores.softmax().matmul(&heads[2]).transpose(&[0, 2, 1, 3]);
    let mixed = mixed.reshape([rows, WIDTH as i32]);
    let x = x + half_dense(g, "out", &mixed, [WIDTH, WIDTH]).cast(DType::Float);
    let up = half_dense(g, "up", &norm("n2", &x), [WIDTH, 4 * WIDTH]);
    let inner = (&up + &up * &up * &up * 0.044715) * 0.797_884_6;
    let gelu = &up * 0.5 * (inner.tanh() + 1.0);
    let y = x + half_dense(g, "down", &gelu, [4 * WIDTH, WIDTH]).cast(DType::Float);
    let loss = losses::mean_squared_error(&target, &y);
    let step = Adam::new(1e-4).minimize(&loss);
    (loss, step)
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
