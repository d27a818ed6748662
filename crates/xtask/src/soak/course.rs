//! The progress of training: steps and losses that the workers report.

use std::time::Duration;

/// The loss over time.
#[derive(Default)]
pub struct Course {
    /// Time, global step and loss.
    points: Vec<(Duration, i64, f64)>,
    furthest: i64,
    /// How often the global step decreased because a checkpoint was restored.
    returns: u32,
}

/// The number of points in a median.
const SOME: usize = 50;

impl Course {
    /// Reads a line of a worker. Returns whether it reports a step.
    pub fn take(&mut self, line: &str, at: Duration) -> bool {
        let Ok(json) = serde_json::from_str::<serde_json::Value>(line) else { return false };
        let Some(step) = json["global_step"].as_i64() else { return false };
        if self.points.last().is_some_and(|(_, last, _)| step + 10 < *last) {
            self.returns += 1;
        }
        self.furthest = self.furthest.max(step);
        // A loss that is not finite is null in JSON.
        self.points.push((at, step, json["loss"].as_f64().unwrap_or(f64::NAN)));
        true
    }

    /// The progress in one line.
    pub fn now(&self) -> String {
        match self.points.last() {
            None => "no step yet".into(),
            Some((_, step, _)) => {
                let loss = median(&self.points[self.points.len().saturating_sub(SOME)..]);
                format!("step {step}, loss {loss:.1e}, {} restores", self.returns)
            }
        }
    }

    /// The whole run in one line.
    pub fn summary(&self) -> String {
        let tenths: Vec<String> = self
            .points
            .chunks(self.points.len().div_ceil(10).max(1))
            .map(|part| format!("{:.1e}", median(part)))
            .collect();
        format!("{} steps, loss by tenths: {}", self.furthest, tenths.join(" "))
    }

    /// The problem with the losses, if there is one.
    pub fn problem(&self) -> Option<String> {
        let some = SOME.min(self.points.len() / 2);
        if some == 0 {
            return Some("there were no steps".into());
        }
        let first = median(&self.points[..some]);
        let last = median(&self.points[self.points.len() - some..]);
        let falls = last < first;
        (!falls)
            .then(|| format!("the loss does not fall: {first:.1e} at first, {last:.1e} at the end"))
    }
}

/// The median. NaN if one of the values is NaN.
fn median(points: &[(Duration, i64, f64)]) -> f64 {
    let mut losses: Vec<f64> = points.iter().map(|(_, _, loss)| *loss).collect();
    if losses.iter().any(|loss| loss.is_nan()) {
        return f64::NAN;
    }
    losses.sort_by(f64::total_cmp);
    losses.get(losses.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(losses: &[f64]) -> Course {
        let mut course = Course::default();
        for (i, loss) in losses.iter().enumerate() {
            let line = format!(r#"{{"worker":0,"global_step":{i},"loss":{loss}}}"#);
            assert!(course.take(&line, Duration::from_secs(i as u64)));
        }
        course
    }

    #[test]
    fn a_loss_that_falls_is_no_problem() {
        assert_eq!(course(&[3.0, 2.0, 2.5, 1.0]).problem(), None);
        assert!(course(&[1.0, 1.0, 2.0, 2.5]).problem().is_some());
        assert!(Course::default().problem().is_some());
    }

    #[test]
    fn a_loss_that_is_no_number_is_one() {
        let mut course = course(&[3.0, 2.0]);
        assert!(course.take(r#"{"global_step":3,"loss":null}"#, Duration::ZERO));
        assert!(course.problem().is_some());
        assert!(!course.take("no JSON", Duration::ZERO) && !course.take("{}", Duration::ZERO));
    }
}
