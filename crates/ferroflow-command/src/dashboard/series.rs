//! Curves of bounded length: a full curve drops every other point.

/// The most points of a curve.
const MOST: usize = 600;

/// A curve with its newest points exact.
#[derive(Clone, Debug, Default)]
pub struct Series {
    points: Vec<(f64, f64)>,
    /// Points are kept if they are at least this far apart.
    apart: f64,
}

impl Series {
    /// Adds a point, if it is far enough from the last one.
    pub fn push(&mut self, x: f64, y: f64) {
        let is_near = |last: f64| x > last && x - last < self.apart;
        if !y.is_finite() || self.points.last().is_some_and(|(last, _)| is_near(*last)) {
            return;
        }
        // A job that was restored starts again at an earlier step.
        self.points.retain(|(old, _)| *old < x);
        self.points.push((x, y));
        if self.points.len() > MOST {
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            let span = self.points.last().map_or(0.0, |last| last.0 - self.points[0].0);
            self.apart = span / MOST as f64;
        }
    }

    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_bounded_and_keeps_its_ends() {
        let mut series = Series::default();
        (0..100_000).for_each(|i| series.push(f64::from(i), 1.0));
        assert!(series.points().len() <= MOST);
        assert_eq!(series.points()[0].0, 0.0);
        assert!(series.points().last().unwrap().0 > 99_000.0);
        let before = series.points().len();
        series.push(100_000.0, f64::NAN);
        assert_eq!(series.points().len(), before);
    }

    #[test]
    fn a_restored_job_replaces_the_steps_after_its_checkpoint() {
        let mut series = Series::default();
        (0..10).for_each(|i| series.push(f64::from(i), 1.0));
        series.push(4.0, 2.0);
        assert_eq!(series.points().len(), 5);
        assert_eq!(series.points()[4], (4.0, 2.0));
    }
}
