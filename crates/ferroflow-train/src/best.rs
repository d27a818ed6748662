//! Keeps the checkpoints with the best scores.

use crate::checkpoint_state::{remove_checkpoint, write_whole};
use crate::saver::Saver;
use crate::session::Session;
use ferroflow_core::Result;
use std::path::{Path, PathBuf};

/// Keeps the checkpoints with the best scores in a directory. The file `best` in it lists them, so
/// a restarted program compares with the scores of earlier runs.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{BestSaver, Saver};
/// let w = g.variable("w", 0.0);
/// let mut best = BestSaver::new(Saver::new(&g), "out/best", 3);
/// // After each evaluation: best.offer(&session, step, accuracy)?;
/// assert!(best.best().is_none());
/// ```
pub struct BestSaver {
    saver: Saver,
    dir: PathBuf,
    keep: usize,
    larger_is_better: bool,
    /// The best first.
    kept: Vec<(f64, String)>,
}

impl BestSaver {
    /// Keeps `keep` checkpoints in `dir`: those with the largest scores.
    pub fn new(saver: Saver, dir: impl AsRef<Path>, keep: usize) -> BestSaver {
        let dir = dir.as_ref().to_path_buf();
        let kept = read(&dir);
        let saver = saver.max_to_keep(0);
        BestSaver { saver, dir, keep: keep.max(1), larger_is_better: true, kept }
    }

    /// Keeps the checkpoints with the smallest scores instead, for losses.
    #[must_use]
    pub fn smaller_is_better(mut self) -> BestSaver {
        self.larger_is_better = false;
        self
    }

    /// The best checkpoint so far and its score.
    pub fn best(&self) -> Option<(f64, &str)> {
        self.kept.first().map(|(score, path)| (*score, path.as_str()))
    }

    /// Saves the variables if their score is among the best, and returns the path. NaN is never
    /// among the best.
    pub fn offer(&mut self, session: &Session, step: i64, score: f64) -> Result<Option<String>> {
        let is_better = |a: f64, b: f64| if self.larger_is_better { a > b } else { a < b };
        let place = self.kept.iter().take_while(|(known, _)| !is_better(score, *known)).count();
        if score.is_nan() || place >= self.keep {
            return Ok(None);
        }
        let path = self.saver.save(session, self.dir.join("best"), Some(step))?;
        self.kept.retain(|(_, known)| *known != path);
        self.kept.insert(place.min(self.kept.len()), (score, path.clone()));
        let worse = self.kept.split_off(self.keep.min(self.kept.len()));
        let lines = self.kept.iter().map(|(score, path)| {
            let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            format!("{score} {name}\n")
        });
        write_whole(&self.dir.join(LIST), lines.collect::<String>().as_bytes())?;
        worse.iter().for_each(|(_, path)| remove_checkpoint(path));
        Ok(Some(path))
    }
}

const LIST: &str = "best";

/// The checkpoints that an earlier run kept. A list that cannot be read counts as empty.
fn read(dir: &Path) -> Vec<(f64, String)> {
    let text = std::fs::read_to_string(dir.join(LIST)).unwrap_or_default();
    let entry = |line: &str| {
        let (score, name) = line.split_once(' ')?;
        let path = dir.join(name).display().to_string();
        Path::new(&format!("{path}.index")).exists().then_some(())?;
        Some((score.parse().ok()?, path))
    };
    text.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, initialized, temporary};

    #[test]
    fn the_best_checkpoints_are_kept() {
        let dir = temporary("best");
        let g = graph();
        g.variable("w", 0.0);
        let savers = [Saver::new(&g), Saver::new(&g)];
        let s = initialized(&g).unwrap();
        let [first, second] = savers;
        let mut best = BestSaver::new(first, &dir, 2);
        for (step, score) in [(1, 0.5), (2, 0.7), (3, 0.6), (4, 0.1), (5, f64::NAN)] {
            let saved = best.offer(&s, step, score).unwrap();
            assert_eq!(saved.is_some(), step <= 3, "step {step}");
        }
        assert!(best.best().unwrap().1.ends_with("best-2"));
        let there = |step: i64| dir.join(format!("best-{step}.index")).exists();
        assert_eq!([1, 2, 3, 4].map(there), [false, true, true, false]);
        // A second run knows the scores of the first.
        let mut again = BestSaver::new(second, &dir, 2);
        assert_eq!(again.offer(&s, 6, 0.55).unwrap(), None);
        assert!(again.offer(&s, 7, 0.9).unwrap().is_some());
        assert_eq!([2, 3, 7].map(there), [true, false, true]);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
