//! The exchanges of a group: rings with TensorFlow's chunks and keys, and direct exchanges.

use super::{CollectivePart, ResolvedGroup};
use bytes::Bytes;
use ferroflow_core::{Merge, Result, divide, err, merge};
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use std::ops::Range;
use tokio::sync::oneshot;

/// TensorFlow's alignment of the chunks of a reduction.
const ALIGNMENT: usize = 64;
/// The preferred limit of a chunk.
const LARGEST_CHUNK: usize = 4 << 20;
/// Larger reductions run on a blocking thread.
const LITTLE: usize = 64 << 10;

pub(super) struct Ring<'a> {
    pub part: &'a CollectivePart,
    pub group: &'a ResolvedGroup,
    pub rank: usize,
    /// Provided values that other ranks have not taken yet.
    pub provided: Mutex<Vec<(usize, oneshot::Receiver<()>)>>,
}

impl Ring<'_> {
    fn size(&self) -> usize {
        self.group.0.len()
    }

    fn before(&self) -> usize {
        (self.rank + self.size() - 1) % self.size()
    }

    /// `group:instance:frame:iteration`, which identifies a collective within a step.
    fn instance(&self) -> String {
        let call = &self.part.call;
        let (frame, iter) = call.frame_iter;
        format!("{}:{}:{frame}:{iter}", call.group_key, call.instance_key)
    }

    fn provide(&self, pass: u32, section: usize, value: Bytes) -> Result<()> {
        let key = format!("{}:{pass}:{section}:{}", self.instance(), self.rank);
        self.keep((self.rank + 1) % self.size(), key, value)
    }

    fn keep(&self, to: usize, key: String, value: Bytes) -> Result<()> {
        let taken = self.part.provide(key, value)?;
        self.provided.lock().push((to, taken));
        Ok(())
    }

    /// Waits until the others have taken all values of this member.
    pub async fn all_taken(self) -> Result<()> {
        let Ring { part, group, provided, .. } = self;
        let taken = provided.into_inner().into_iter();
        let all = taken.map(|(to, taken)| part.taken(&group.0[to], taken));
        try_join_all(all).await.map(|_| ())
    }

    /// Fetches a value from the previous rank.
    async fn fetch(&self, pass: u32, section: usize, bytes: usize) -> Result<Bytes> {
        let before = self.before();
        let key = format!("{}:{pass}:{section}:{before}", self.instance());
        self.part.fetch(&self.group.0[before], key, bytes).await
    }

    /// Ring all-reduce: each chunk goes round twice, first merged at each rank, then as the result.
    pub async fn reduce(&self, values: Vec<u8>, by: Merge, is_mean: bool) -> Result<Vec<u8>> {
        let width = self.part.call.dtype.size().unwrap_or(1);
        let subdivisions = subdivisions(values.len(), self.size());
        let chunks = chunks(values.len() / width, width, self.size() * subdivisions);
        let all = chunks.into_iter().enumerate().filter(|(_, range)| !range.is_empty());
        let work = all.map(|(section, range)| {
            let chunk = values[range.start * width..range.end * width].to_vec();
            self.reduce_chunk(section, section / subdivisions, chunk, by, is_mean)
        });
        Ok(try_join_all(work).await?.concat())
    }

    async fn reduce_chunk(
        &self,
        section: usize,
        first: usize,
        mut chunk: Vec<u8>,
        by: Merge,
        is_mean: bool,
    ) -> Result<Vec<u8>> {
        let (n, dtype) = (self.size(), self.part.call.dtype);
        let last = (first + n - 1) % n;
        if self.rank != first {
            let theirs = self.fetch(0, section, chunk.len()).await?;
            chunk = computed(chunk, move |chunk| merge(by, dtype, chunk, &theirs)).await?;
        }
        if self.rank != last {
            self.provide(0, section, chunk.clone().into())?;
            chunk = self.fetch(1, section, chunk.len()).await?.into();
        } else if is_mean {
            chunk = computed(chunk, move |chunk| divide(dtype, chunk, n)).await?;
        }
        if self.rank != (first + n - 2) % n {
            self.provide(1, section, chunk.clone().into())?;
        }
        Ok(chunk)
    }

    /// Ring all-gather: the values of each member go round once.
    pub async fn gather(&self, own: Vec<u8>) -> Result<Vec<u8>> {
        let n = self.size();
        if own.is_empty() {
            return Ok(own);
        }
        let work = (0..n).map(|from| {
            let own = &own;
            async move {
                let chunk = match from == self.rank {
                    true => Bytes::copy_from_slice(own),
                    false => self.fetch(0, from, own.len()).await?,
                };
                if self.rank != (from + n - 1) % n {
                    self.provide(0, from, chunk.clone())?;
                }
                Ok::<Bytes, ferroflow_core::Error>(chunk)
            }
        });
        Ok(try_join_all(work).await?.concat())
    }

    fn direct_key(&self, from: usize, to: usize) -> String {
        format!("{}:0:{from}:{to}", self.instance())
    }

    pub async fn broadcast(&self, own: Option<Vec<u8>>, source: usize) -> Result<Vec<u8>> {
        let call = &self.part.call;
        let bytes = call.shape.elements() * call.dtype.size().unwrap_or(1);
        if source != self.rank {
            let key = self.direct_key(source, self.rank);
            return Ok(self.part.fetch(&self.group.0[source], key, bytes).await?.into());
        }
        let own = Bytes::from(own.ok_or_else(|| err!(Internal, "the sender has nothing to send"))?);
        for to in (0..self.size()).filter(|&to| to != source) {
            self.keep(to, self.direct_key(source, to), own.clone())?;
        }
        Ok(own.into())
    }

    /// All-to-all: rows go to devices in group order, and are stored at the places that the devices
    /// requested. TensorFlow has the same rule.
    pub async fn all_to_all(&self, own: Vec<u8>) -> Result<Vec<u8>> {
        let n = self.size();
        let each = own.len() / n;
        let own = Bytes::from(own);
        let row = |i: usize| own.slice(i * each..(i + 1) * each);
        for to in (0..n).filter(|&to| to != self.rank) {
            self.keep(to, self.direct_key(self.rank, to), row(to))?;
        }
        let rows = (0..n).map(|from| {
            let mine = row(self.rank);
            async move {
                if from == self.rank {
                    return Ok(mine);
                }
                let key = self.direct_key(from, self.rank);
                self.part.fetch(&self.group.0[from], key, each).await
            }
        });
        let mut rows: Vec<(usize, Bytes)> =
            self.group.0.iter().map(|m| m.place).zip(try_join_all(rows).await?).collect();
        rows.sort_unstable_by_key(|(place, _)| *place);
        Ok(rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>().concat())
    }
}

/// Changes bytes, on a blocking thread if there are many.
async fn computed(
    mut bytes: Vec<u8>,
    change: impl FnOnce(&mut [u8]) -> Result<()> + Send + 'static,
) -> Result<Vec<u8>> {
    if bytes.len() <= LITTLE {
        change(&mut bytes)?;
        return Ok(bytes);
    }
    let work = move || change(&mut bytes).map(|()| bytes);
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|e| Err(err!(Internal, "a reduction panicked: {e}")))
}

/// The number of rings of a reduction of `bytes`: two if the chunks of one ring would be large.
fn subdivisions(bytes: usize, size: usize) -> usize {
    if bytes / size > LARGEST_CHUNK { 2 } else { 1 }
}

/// Splits `count` values into `parts` chunks. All but the last ones have the same length.
fn chunks(count: usize, width: usize, parts: usize) -> Vec<Range<usize>> {
    let mut each = count.div_ceil(parts);
    let beyond = each * width % ALIGNMENT;
    if beyond != 0 {
        each += (ALIGNMENT - beyond) / width;
    }
    (0..parts).map(|i| (i * each).min(count)..((i + 1) * each).min(count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_all_values_at_aligned_places() {
        assert_eq!(chunks(5, 4, 2), [0..5, 5..5]);
        assert_eq!(chunks(40, 4, 2), [0..32, 32..40]);
        assert_eq!(chunks(32, 8, 4), [0..8, 8..16, 16..24, 24..32]);
        assert_eq!(subdivisions(4 << 20, 2), 1);
        assert_eq!(subdivisions(20 << 20, 2), 2);
    }
}
