//! Saves checkpoints in a background thread.

use crate::saver::Saver;
use crate::session::Session;
use ferroflow_core::{Result, err};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Saves checkpoints in a background thread, one at a time, while training continues. As with
/// TensorFlow's asynchronous saver, each variable has the value of the moment it is read.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{BackgroundSaver, Saver};
/// let w = g.variable("w", 0.0);
/// let mut saver = BackgroundSaver::new(Saver::new(&g));
/// // In the loop: saver.start(&session, "out/model".into(), step)?; at the end: saver.finish()?;
/// ```
pub struct BackgroundSaver {
    saver: Arc<Saver>,
    running: Option<JoinHandle<Result<String>>>,
}

impl BackgroundSaver {
    /// Saves with `saver`.
    pub fn new(saver: Saver) -> BackgroundSaver {
        BackgroundSaver { saver: Arc::new(saver), running: None }
    }

    /// The saver that writes the checkpoints.
    pub fn saver(&self) -> &Saver {
        &self.saver
    }

    /// Waits for the previous checkpoint, then starts to save to `prefix-step`. Returns the path of
    /// the previous checkpoint, or its error.
    pub fn start(
        &mut self,
        session: &Session,
        prefix: PathBuf,
        step: i64,
    ) -> Result<Option<String>> {
        let before = self.finish()?;
        let (saver, session) = (self.saver.clone(), session.clone());
        let thread = std::thread::Builder::new().name("ff-saver".into());
        let save = move || saver.save(&session, prefix, Some(step));
        let running = thread.spawn(save);
        self.running =
            Some(running.map_err(|e| err!(ResourceExhausted, "cannot start a thread: {e}"))?);
        Ok(before)
    }

    /// Waits for the checkpoint in progress, if there is one. The wait ends at the session's
    /// deadline, or when the session closes.
    pub fn finish(&mut self) -> Result<Option<String>> {
        let Some(thread) = self.running.take() else { return Ok(None) };
        let saved = thread.join().map_err(|_| err!(Internal, "the saving thread panicked"))?;
        saved.map(Some)
    }
}

impl Drop for BackgroundSaver {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saver::latest_checkpoint;
    use crate::testing::{graph, initialized, temporary};

    #[test]
    fn checkpoints_are_written_in_order() {
        let dir = temporary("background");
        let g = graph();
        let w = g.variable("w", 0.0);
        let add = w.assign_add(1.0);
        let mut saver = BackgroundSaver::new(Saver::new(&g));
        let s = initialized(&g).unwrap();
        for step in 1..=3 {
            s.run(&add).unwrap();
            saver.start(&s, dir.join("model"), step).unwrap();
        }
        let last = saver.finish().unwrap().unwrap();
        assert_eq!(latest_checkpoint(&dir).unwrap(), last);
        assert_eq!(saver.finish().unwrap(), None);
        s.run(w.assign(0.0)).unwrap();
        saver.saver().restore(&s, &last).unwrap();
        assert_eq!(s.run(w.scalar::<f32>()).unwrap(), 3.0);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
