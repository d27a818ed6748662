//! Measures a model's step on this machine, for `ferroflow plan --measure`.

use super::Model;
use super::data::Draw;
use super::model::{Source, Trainer, build, trainer};
use ferroflow::prelude::*;
use std::time::{Duration, Instant};

/// Warm-up steps, and the time to measure for.
const WARM_UP: usize = 5;
const TIME: Duration = Duration::from_secs(2);

/// Bytes of the gradients of a model, and the seconds that a step takes in this process alone.
pub fn measured(model: Model, batch: usize) -> Result<(f64, f64)> {
    let g = Graph::new();
    g.set_seed(1);
    let source = Source::of(model, None, false)?;
    let built = build(model, &source, &g);
    let Trainer::Alone(train) = trainer(model, model.learning_rate(), &built.loss, None, false)
    else {
        return Err(Error::new(Code::Internal, "a single model cannot train synchronously"));
    };
    let bytes = |v: &Variable| {
        let width = v.dtype().size().unwrap_or(1);
        v.variable_shape().elements().unwrap_or(0) * width
    };
    let total: usize = g.trainable_variables().iter().map(bytes).sum();
    let init = g.global_initializer();
    let session = Session::local(&g)?;
    session.run(&init)?;
    let mut draw = Draw::new(1);
    let mut seconds = Vec::new();
    let start = Instant::now();
    while seconds.len() < WARM_UP + 5 || start.elapsed() < TIME {
        let (x, y) = source.batch(&mut draw, batch)?;
        let feeds = [(built.input.name(), x), (built.target.name(), y)];
        let before = Instant::now();
        session.run_fed(feeds.as_slice(), &train)?;
        seconds.push(before.elapsed().as_secs_f64());
    }
    let steps = &mut seconds[WARM_UP..];
    steps.sort_by(f64::total_cmp);
    Ok((total as f64, steps[steps.len() / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_bytes_and_its_step_takes_time() {
        let (bytes, seconds) = measured(Model::Linear, 10).unwrap();
        assert_eq!(bytes, 8.0);
        assert!(seconds > 0.0);
    }
}
