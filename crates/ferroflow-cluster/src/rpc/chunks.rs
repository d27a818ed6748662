//! A message as a list of pieces.

use bytes::{Buf, Bytes, BytesMut};
use ferroflow_core::Reservation;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// Shorter segments are joined: a copy is cheaper than a separate buffer for the kernel.
const SMALL: usize = 1024;

/// A sequence of bytes held as a list of [`Bytes`]. [`Buf`] reads it without joining them.
///
/// Holds no empty segment. A single segment needs no allocation beyond its own.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    first: Bytes,
    rest: VecDeque<Bytes>,
    len: usize,
}

impl Chunks {
    /// No bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of unread bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a segment.
    pub fn push(&mut self, segment: Bytes) {
        if segment.is_empty() {
            return;
        }
        self.len += segment.len();
        if self.first.is_empty() {
            self.first = segment;
        } else {
            self.rest.push_back(segment);
        }
    }

    /// The segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = &Bytes> {
        (!self.first.is_empty()).then_some(&self.first).into_iter().chain(&self.rest)
    }

    /// All bytes as one segment. This copies unless there is only one.
    pub fn into_bytes(mut self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        let len = self.len;
        self.copy_to_bytes(len)
    }

    /// Splits off the first `at` bytes without a copy.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_to(&mut self, at: usize) -> Chunks {
        assert!(at <= self.len, "split at {at} of {} bytes", self.len);
        let mut head = Chunks::new();
        while head.len < at {
            let segment = self.first.split_to(self.first.len().min(at - head.len));
            self.len -= segment.len();
            head.push(segment);
            self.drop_spent();
        }
        head
    }

    /// Joins runs of small segments, so that they do not become many system calls.
    pub(super) fn join_small(self) -> Chunks {
        if self.rest.is_empty() {
            return self;
        }
        let mut joined = Chunks::new();
        let mut run = BytesMut::new();
        let mut segments = std::iter::once(self.first).chain(self.rest).peekable();
        while let Some(segment) = segments.next() {
            let small = segment.len() < SMALL;
            let next_small = segments.peek().is_some_and(|next| next.len() < SMALL);
            if small && (next_small || !run.is_empty()) {
                run.extend_from_slice(&segment);
                if !next_small {
                    joined.push(run.split().freeze());
                }
            } else {
                joined.push(segment);
            }
        }
        joined
    }

    /// The same bytes. `memory` counts them as long as one of them is in use.
    pub(super) fn held_with(self, memory: Reservation) -> Chunks {
        let memory = Arc::new(memory);
        let hold = |bytes: Bytes| match bytes.len() < SMALL {
            true => bytes,
            false => Bytes::from_owner(Held { bytes, _memory: memory.clone() }),
        };
        let Chunks { first, rest, len } = self;
        Chunks { first: hold(first), rest: rest.into_iter().map(hold).collect(), len }
    }

    /// Restores the invariant that `first` is the current segment.
    fn drop_spent(&mut self) {
        if self.first.is_empty() {
            self.first = self.rest.pop_front().unwrap_or_default();
        }
    }
}

/// Bytes that are counted until the last reference to them is dropped.
struct Held {
    bytes: Bytes,
    _memory: Arc<Reservation>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Buf for Chunks {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        &self.first
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for (slice, segment) in slices.iter_mut().zip(self.segments()) {
            *slice = IoSlice::new(segment);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len, "advance by {count} of {} bytes", self.len);
        self.len -= count;
        while count > 0 {
            let step = count.min(self.first.len());
            self.first.advance(step);
            count -= step;
            self.drop_spent();
        }
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        assert!(len <= self.len, "copy {len} of {} bytes", self.len);
        if len <= self.first.len() {
            let head = self.first.split_to(len);
            self.len -= len;
            self.drop_spent();
            return head;
        }
        let mut copy = BytesMut::with_capacity(len);
        for segment in self.split_to(len).segments() {
            copy.extend_from_slice(segment);
        }
        copy.freeze()
    }
}

impl From<Bytes> for Chunks {
    fn from(segment: Bytes) -> Self {
        let mut chunks = Chunks::new();
        chunks.push(segment);
        chunks
    }
}

impl From<Vec<u8>> for Chunks {
    fn from(segment: Vec<u8>) -> Self {
        Bytes::from(segment).into()
    }
}

impl From<Vec<Bytes>> for Chunks {
    fn from(segments: Vec<Bytes>) -> Self {
        segments.into_iter().collect()
    }
}

impl FromIterator<Bytes> for Chunks {
    fn from_iter<I: IntoIterator<Item = Bytes>>(segments: I) -> Self {
        let mut chunks = Chunks::new();
        segments.into_iter().for_each(|segment| chunks.push(segment));
        chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(segments: &[&'static str]) -> Chunks {
        segments.iter().map(|s| Bytes::from_static(s.as_bytes())).collect()
    }

    #[test]
    fn reads_across_segments() {
        let mut chunks = of(&["ab", "", "cde", "f"]);
        assert_eq!(chunks.len(), 6);
        assert_eq!(chunks.copy_to_bytes(3), "abc");
        chunks.advance(1);
        assert_eq!(chunks.chunk(), b"e");
        assert_eq!(chunks.clone().into_bytes(), "ef");
        chunks.advance(2);
        assert!(chunks.is_empty() && chunks.chunk().is_empty());
    }

    #[test]
    fn one_segment_is_returned_without_a_copy() {
        let segment = Bytes::from(vec![7; 100]);
        let address = segment.as_ptr();
        assert_eq!(Chunks::from(segment).into_bytes().as_ptr(), address);
    }

    #[test]
    fn splits_without_copying() {
        let mut tail = of(&["abc", "def"]);
        let head = tail.split_to(4);
        assert_eq!((head.len(), tail.len()), (4, 2));
        assert_eq!(head.into_bytes(), "abcd");
        assert_eq!(tail.into_bytes(), "ef");
    }

    #[test]
    fn only_adjacent_small_segments_are_joined() {
        let large = Bytes::from(vec![1; SMALL]);
        let address = large.as_ptr();
        let mut chunks = of(&["a", "b", "c"]);
        chunks.push(large);
        chunks.push(Bytes::from_static(b"d"));
        let joined = chunks.clone().join_small();
        assert_eq!(joined.segments().map(Bytes::len).collect::<Vec<_>>(), [3, SMALL, 1]);
        assert!(joined.segments().any(|s| s.as_ptr() == address));
        assert_eq!(joined.into_bytes(), chunks.into_bytes());
    }

    #[test]
    fn fills_as_many_slices_as_there_are() {
        let chunks = of(&["a", "b", "c"]);
        let mut slices = [IoSlice::new(&[]); 2];
        assert_eq!(chunks.chunks_vectored(&mut slices), 2);
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(chunks.chunks_vectored(&mut slices), 3);
    }
}
