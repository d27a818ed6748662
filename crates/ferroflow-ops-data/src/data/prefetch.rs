//! PrefetchDataset: prepares elements in the background before they are requested.

use super::dataset::*;
use super::scope::Scope;
use super::task::Background;
use super::wait::Buffer;
use crate::prelude::*;

/// The default number of prefetched elements.
const OWN_CHOICE: i64 = 8;

struct Prefetch {
    input: DatasetRef,
    ahead: i64,
}

impl Dataset for Prefetch {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let input = self.input.iterate(scope)?;
        Ok(match self.ahead {
            0 => input,
            -1 => Elements::new(Prefetching::new(input, OWN_CHOICE as usize, scope)),
            n => Elements::new(Prefetching::new(input, n as usize, scope)),
        })
    }

    fn cardinality(&self) -> i64 {
        self.input.cardinality()
    }
}

/// Elements from a buffer. A background task fills it after the first request.
pub(super) struct Prefetching {
    input: Option<Elements>,
    scope: Scope,
    buffer: Arc<Buffer<Result<Tuple>>>,
    work: Option<Background>,
}

impl Prefetching {
    pub fn new(input: Elements, ahead: usize, scope: &Scope) -> Prefetching {
        let buffer = Buffer::new(ahead);
        Prefetching { input: Some(input), scope: scope.clone(), buffer, work: None }
    }

    /// Begins to fill the buffer.
    fn start(&mut self) {
        if let Some(input) = self.input.take() {
            let work = fill(input, self.buffer.clone());
            self.work = Some(Background::start(self.scope.threads(), self.scope.memory(), work));
        }
    }
}

async fn fill(mut input: Elements, to: Arc<Buffer<Result<Tuple>>>) {
    loop {
        to.reserve().await;
        match input.next().await.transpose() {
            Some(element) => to.push_element(element).await,
            None => break,
        }
    }
    to.give_up();
    to.end();
}

impl Produce for Prefetching {
    fn next(&mut self) -> Next<'_> {
        self.start();
        Box::pin(async { self.buffer.pop().await.transpose() })
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("PrefetchDataset")
        .doc("A dataset whose elements are made ahead of need.")
        .input("input_dataset: variant")
        .input("buffer_size: int64")
        .makes_dataset()
        .element_types()
        .attr("slack_period: int = 0")
        .attr("legacy_autotune: bool = true")
        .attr("buffer_size_min: int = 0")
        .metadata_attr()
        .cpu(|init| {
            makes(init, |ctx| {
                let ahead = scalar(ctx, 1, "buffer_size")?;
                ensure!(
                    ahead >= -1,
                    InvalidArgument,
                    "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning"
                );
                Ok(Prefetch { input: input(ctx, 0)?, ahead })
            })
        });
}
