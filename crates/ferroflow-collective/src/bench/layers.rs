//! Simulated training steps: layers take time, and gradients of realistic sizes are reduced during
//! the backward pass.

use crate::engine::{CollectiveHandle, Engine, SubmitOptions};
use crate::reduce::ReduceOp;
use ferroflow_core::{Result, ensure};
use std::time::{Duration, Instant};

/// A layer of a network.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The name of the layer.
    pub name: String,
    /// The number of values of each of its variables.
    pub values: Vec<usize>,
    /// Its part of the time of a step. All layers add up to 1.
    pub share: f64,
}

/// VGG-16: most work is in the first layers, most bytes are in the last ones.
pub fn vgg16() -> Vec<Layer> {
    // Layer, channels in and out, and millions of multiplications for an image of 224 by 224.
    const CONVOLUTIONS: [(&str, usize, usize, f64); 13] = [
        ("conv1_1", 3, 64, 86.7),
        ("conv1_2", 64, 64, 1849.7),
        ("conv2_1", 64, 128, 924.8),
        ("conv2_2", 128, 128, 1849.7),
        ("conv3_1", 128, 256, 924.8),
        ("conv3_2", 256, 256, 1849.7),
        ("conv3_3", 256, 256, 1849.7),
        ("conv4_1", 256, 512, 924.8),
        ("conv4_2", 512, 512, 1849.7),
        ("conv4_3", 512, 512, 1849.7),
        ("conv5_1", 512, 512, 462.4),
        ("conv5_2", 512, 512, 462.4),
        ("conv5_3", 512, 512, 462.4),
    ];
    const DENSE: [(&str, usize, usize); 3] =
        [("fc6", 25_088, 4096), ("fc7", 4096, 4096), ("fc8", 4096, 1000)];
    let convolutions = CONVOLUTIONS.iter().map(|&(name, from, to, work)| Layer {
        name: name.into(),
        values: vec![9 * from * to, to],
        share: work,
    });
    let dense = DENSE.iter().map(|&(name, from, to)| Layer {
        name: name.into(),
        values: vec![from * to, to],
        share: (from * to) as f64 / 1e6,
    });
    let mut layers: Vec<Layer> = convolutions.chain(dense).collect();
    let all: f64 = layers.iter().map(|l| l.share).sum();
    layers.iter_mut().for_each(|l| l.share /= all);
    layers
}

/// Bytes of the gradients of all layers.
pub fn bytes_of(layers: &[Layer]) -> usize {
    layers.iter().flat_map(|l| &l.values).sum::<usize>() * 4
}

/// Seconds of each of `steps` steps. Without other ranks a step takes `alone`, a third of it for
/// the forward pass and two thirds for the backward pass. A layer's gradients are submitted after
/// its backward pass, and its next forward pass waits for them. With `by_need`, gradients that are
/// needed first have priority. Every rank calls it.
pub fn training_steps(
    engine: &Engine,
    layers: &[Layer],
    alone: Duration,
    steps: usize,
    by_need: bool,
) -> Result<Vec<f64>> {
    let mut gradients: Vec<Vec<Vec<f32>>> =
        layers.iter().map(|l| l.values.iter().map(|&n| vec![1.0; n]).collect()).collect();
    let mut reduced: Vec<Vec<CollectiveHandle<f32>>> = layers.iter().map(|_| Vec::new()).collect();
    let mut seconds = Vec::with_capacity(steps);
    engine.barrier("start", crate::SetId::WORLD)?;
    // The first step warms up. The step after the last one waits for the last gradients.
    let mut start = Instant::now();
    let mut device = Device { busy_until: start };
    for step in 0..steps + 2 {
        for (layer, (waited, kept)) in layers.iter().zip(reduced.iter_mut().zip(&mut gradients)) {
            let waits_from = Instant::now();
            for handle in waited.drain(..) {
                kept.push(handle.wait()?);
            }
            device.busy_until += waits_from.elapsed();
            let right = step == 0 || kept.iter().all(|g| g.first() == Some(&1.0));
            ensure!(right, Internal, "the mean of the gradients of {} is wrong", layer.name);
            device.work(alone.mul_f64(layer.share / 3.0));
        }
        if step > 1 {
            seconds.push(start.elapsed().as_secs_f64());
        }
        if step > 0 {
            start = Instant::now();
            device.busy_until = start;
        }
        if step == steps + 1 {
            break;
        }
        for (i, layer) in layers.iter().enumerate().rev() {
            device.work(alone.mul_f64(layer.share * 2.0 / 3.0));
            let priority = if by_need { -(i as i32) } else { 0 };
            for (v, values) in gradients[i].drain(..).enumerate() {
                let ask = SubmitOptions { priority, ..SubmitOptions::op(ReduceOp::Mean) };
                let name = format!("{}/{v}", layer.name);
                reduced[i].push(engine.all_reduce(&name, values, ask)?);
            }
        }
    }
    Ok(seconds)
}

/// A simulated processor. Layers follow each other without a gap, even if a sleep takes longer than
/// requested.
struct Device {
    busy_until: Instant,
}

impl Device {
    fn work(&mut self, time: Duration) {
        self.busy_until += time;
        std::thread::sleep(self.busy_until.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineOptions, Group, GroupOptions, Membership};

    #[test]
    fn vgg16_has_most_parameters_in_its_dense_layers() {
        let layers = vgg16();
        assert_eq!(bytes_of(&layers), 138_357_544 * 4);
        assert!((layers.iter().map(|l| l.share).sum::<f64>() - 1.0).abs() < 1e-12);
        let dense: f64 = layers[13..].iter().map(|l| l.share).sum();
        assert!(dense < 0.01 && bytes_of(&layers[13..]) > 490_000_000);
    }

    #[test]
    fn a_single_rank_takes_the_time_of_its_layers() {
        let group = Group::join(&Membership::new(0, 1, ""), GroupOptions::default()).unwrap();
        let engine = Engine::start(group, EngineOptions::default()).unwrap();
        let layer = |share: f64| Layer { name: share.to_string(), values: vec![10, 2], share };
        let alone = Duration::from_millis(3);
        let steps = training_steps(&engine, &[layer(0.25), layer(0.75)], alone, 3, true).unwrap();
        assert_eq!(steps.len(), 3);
        assert!(steps.iter().all(|&s| s >= 0.003));
    }
}
