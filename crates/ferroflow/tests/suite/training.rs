//! Models trained for 20 steps have the losses that were recorded from TensorFlow with the same
//! initial values. TensorFlow's checkpoints are restored.

use ferroflow::prelude::*;
use std::path::PathBuf;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/training").join(name)
}

/// As in record.py.
fn values(shape: &[usize], seed: i64, scale: f64) -> Tensor {
    let n: usize = shape.iter().product();
    let value =
        |i: i64| ((((i * 7919 + seed * 104_729) % 1000) as f64 / 500.0 - 1.0) * scale) as f32;
    let values: Vec<f32> = (0..n as i64).map(value).collect();
    Tensor::from_slice(shape, &values).unwrap()
}

fn labels(n: i64, classes: i64, seed: i64) -> Tensor {
    let labels: Vec<i64> = (0..n).map(|i| (i * 31 + seed) % classes).collect();
    Tensor::vector(&labels)
}

fn variable(g: &Graph, name: &str, shape: &[usize], seed: i64) -> Variable {
    g.variable(name, values(shape, seed, 0.5))
}

fn model(g: &Graph, name: &str) -> Output {
    let v = |name: &str, shape: &[usize], seed| variable(g, name, shape, seed);
    let constant = |shape: &[usize], seed, scale| g.constant(values(shape, seed, scale));
    match name {
        "linear" => {
            let (x, w, b) = (constant(&[16], 1, 1.0), v("w", &[], 2), v("b", &[], 3));
            (&x * &w + &b - (&x * 2.0 + 10.0)).square().mean_all()
        }
        "mlp" => {
            let x = constant(&[32, 64], 1, 1.0);
            let h = (x.matmul(&v("w1", &[64, 16], 2)) + &v("b1", &[16], 3)).relu();
            let logits = h.matmul(&v("w2", &[16, 10], 4)) + &v("b2", &[10], 5);
            losses::sparse_softmax_cross_entropy(&g.constant(labels(32, 10, 6)), &logits)
        }
        "cnn" => {
            let x = constant(&[8, 8, 8, 1], 1, 1.0);
            let h = x.conv2d(&v("k", &[3, 3, 1, 4], 2), 1, Padding::Same);
            let h = h.bias_add(&v("kb", &[4], 3)).relu().max_pool(2, 2, Padding::Same);
            let logits =
                h.reshape([None, Some(64)]).matmul(&v("w", &[64, 10], 4)) + &v("b", &[10], 5);
            losses::sparse_softmax_cross_entropy(&g.constant(labels(8, 10, 6)), &logits)
        }
        "embedding" => {
            let rows = v("table", &[20, 4], 1).gather(&g.constant(labels(16, 11, 2)));
            (rows.sum(&[1]) - constant(&[16], 3, 2.0)).square().mean_all()
        }
        "lstm" => {
            let x = constant(&[4, 5, 3], 1, 1.0);
            let (kernel, bias) = (v("kernel", &[9, 24], 2), v("bias", &[24], 3));
            let by_time = x.transpose(&[1, 0, 2]);
            let zero = g.constant(Tensor::zeros(DType::Float, [4, 6]).unwrap());
            let end = g.while_loop(
                &[g.constant(0), zero.clone(), zero],
                |s| s[0].less(5),
                |s| {
                    let input = by_time.gather(&s[0]);
                    let gates = g.concat(&[input, s[2].clone()], 1).matmul(&kernel) + &bias;
                    let gates = gates.split(4, 1);
                    let forget = (&gates[2] + 1.0).sigmoid();
                    let c = &s[1] * forget + gates[0].sigmoid() * gates[1].tanh();
                    let h = c.tanh() * gates[3].sigmoid();
                    vec![&s[0] + 1.0, c, h]
                },
            );
            (&end[2] - 0.5).square().mean_all()
        }
        other => panic!("unknown model {other}"),
    }
}

fn minimize(optimizer: &str, loss: &Output) -> Operation {
    match optimizer {
        "sgd" => Sgd::new(0.1).minimize(loss),
        "momentum" => Momentum::new(0.05, 0.9).minimize(loss),
        "nesterov" => Momentum::new(0.05, 0.9).nesterov().minimize(loss),
        "adagrad" => Adagrad::new(0.1).minimize(loss),
        "adam" => Adam::new(0.01).minimize(loss),
        "rmsprop" => RmsProp::new(0.01).minimize(loss),
        "rmsprop_centered" => RmsProp::new(0.01).momentum(0.5).centered().minimize(loss),
        "ftrl" => Ftrl::new(0.1).regularization(0.001, 0.01).minimize(loss),
        other => panic!("unknown optimizer {other}"),
    }
}

#[test]
fn losses_equal_those_of_tensorflow() {
    let recorded = std::fs::read_to_string(data("losses.txt")).unwrap();
    assert!(recorded.lines().count() > 20);
    let mut wrong = Vec::new();
    for line in recorded.lines() {
        let mut words = line.split_whitespace();
        let (name, optimizer) = (words.next().unwrap(), words.next().unwrap());
        let expected: Vec<f32> = words.map(|w| w.parse().unwrap()).collect();
        let g = Graph::new();
        let loss = model(&g, name);
        let train = minimize(optimizer, &loss);
        let init = g.global_initializer();
        let session = Session::local(&g).unwrap();
        session.run(&init).unwrap();
        let mut losses = Vec::new();
        for _ in 0..20 {
            losses.push(session.run((loss.scalar::<f32>(), &train)).unwrap().0);
        }
        losses.push(session.run(loss.scalar::<f32>()).unwrap());
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 2e-4 * (1e-3 + b.abs());
        if !losses.iter().zip(&expected).all(near) || losses.len() != expected.len() {
            wrong.push(format!("{name} {optimizer}\n  {losses:?}\n  {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn gradients_equal_those_of_tensorflow() {
    let recorded = std::fs::read_to_string(data("gradients.txt")).unwrap();
    let mut checked = 0;
    for name in ["linear", "mlp", "cnn", "embedding", "lstm"] {
        let g = Graph::new();
        let loss = model(&g, name);
        let variables = g.trainable_variables();
        let gradients: Vec<Output> = g
            .gradients(std::slice::from_ref(&loss), &variables)
            .into_iter()
            .map(|gradient| gradient.unwrap().dense())
            .collect();
        let init = g.global_initializer();
        let session = Session::local(&g).unwrap();
        session.run(&init).unwrap();
        for (v, found) in variables.iter().zip(session.run(&gradients).unwrap()) {
            let start = format!("{name} {} ", v.variable_name());
            let line = recorded.lines().find_map(|l| l.strip_prefix(&start)).unwrap();
            let expected: Vec<f32> = line.split(' ').map(|x| x.parse().unwrap()).collect();
            let found = found.as_slice::<f32>().unwrap();
            assert_eq!(found.len(), expected.len(), "{start}");
            let largest = expected.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            for (a, b) in found.iter().zip(&expected) {
                assert!((a - b).abs() <= 1e-5 * largest + 1e-4 * b.abs(), "{start}: {a} {b}");
            }
            checked += 1;
        }
    }
    assert_eq!(checked, recorded.lines().count());
}

#[test]
fn a_checkpoint_of_tensorflow_is_restored() {
    let g = Graph::new();
    let loss = model(&g, "embedding");
    let train = minimize("adam", &loss);
    let saver = Saver::new(&g);
    let session = Session::local(&g).unwrap();
    saver.restore(&session, data("checkpoint-adam").to_str().unwrap()).unwrap();
    let recorded = std::fs::read_to_string(data("losses.txt")).unwrap();
    let line = recorded.lines().find(|l| l.starts_with("embedding adam ")).unwrap();
    let last: f32 = line.split_whitespace().last().unwrap().parse().unwrap();
    let restored = session.run(loss.scalar::<f32>()).unwrap();
    assert!((restored - last).abs() < 1e-4 * last, "{restored} {last}");
    // The optimizer's slots are restored too, so training continues.
    session.run(&train).unwrap();
    assert!(session.run(loss.scalar::<f32>()).unwrap() < restored);
}
