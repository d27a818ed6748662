//! Shared memory for the large feeds and fetches of a session, where its client and its master are
//! processes of one host and user. The bytes of a tensor are copied once, and do not go through a
//! socket.
//!
//! The client asks for it before its first step with a large feed, or after its first large fetch.
//! Each side offers memory to the other, and reports whether it has mapped the other's offer.
//! Tensors for which there is no block at present go through the connection.

use crate::messages::{ShareBlocksRequest, ShareBlocksResponse};
use bytes::Bytes;
use ferroflow_collective::blocks::{BlockPlace, BlockReader, BlockWriter};
use ferroflow_core::{Reservation, Result, Tensor, ensure, err};
use ferroflow_graph::wire::step::{BlockTensor, NamedTensor};
use parking_lot::Mutex;
use std::sync::Arc;

/// Tensors of at least so many bytes go into blocks.
pub(crate) const BLOCKS_FROM: usize = 128 << 10;

/// The limits of shared memory for feeds and for fetches of a session. Unused pages take no memory.
const FEEDS: usize = 1 << 30;
const FETCHES: usize = 512 << 20;

/// The most tensors of a message in blocks: there are no more blocks.
const MOST_TENSORS: usize = 1024;

/// The memory of one side.
pub(crate) struct SharedBlocks {
    /// For tensors that this side sends.
    writer: BlockWriter,
    /// For tensors that it receives.
    reader: Arc<BlockReader>,
    /// Counts the memory for tensors that this side sends.
    counted: Mutex<Reservation>,
}

/// A client's offer, until the server answers.
pub(crate) struct BlockOffer {
    writer: BlockWriter,
    pub request: ShareBlocksRequest,
}

impl BlockOffer {
    /// Makes the memory for feeds.
    pub fn new(session_handle: &str) -> Result<BlockOffer> {
        let writer = BlockWriter::create(FEEDS)?;
        let blocks = writer.offer()?;
        let request = ShareBlocksRequest { session_handle: session_handle.into(), blocks };
        Ok(BlockOffer { writer, request })
    }

    /// Maps the memory for fetches. May block for some seconds.
    pub fn accepted(self, answer: &ShareBlocksResponse) -> Option<SharedBlocks> {
        let memory = answer.blocks.as_ref().filter(|_| answer.takes_blocks)?;
        let reader = BlockReader::open(memory);
        let reader = reader.inspect_err(|e| tracing::debug!("no shared memory: {e}")).ok()?;
        Some(SharedBlocks { writer: self.writer, reader, counted: Mutex::default() })
    }
}

impl SharedBlocks {
    /// Maps a client's memory, and makes the memory for fetches. `None` if the client is on another
    /// host or of another user. May block for some seconds.
    pub fn accept(request: &ShareBlocksRequest) -> Option<(SharedBlocks, ShareBlocksResponse)> {
        let accepted = || {
            let reader = BlockReader::open(&request.blocks)?;
            let writer = BlockWriter::create(FETCHES)?;
            let blocks = Some(writer.offer()?);
            Ok((
                SharedBlocks { writer, reader, counted: Mutex::default() },
                ShareBlocksResponse { takes_blocks: true, blocks },
            ))
        };
        let accepted: Result<_> = accepted();
        accepted.inspect_err(|e| tracing::debug!("no shared memory for a session: {e}")).ok()
    }

    /// Moves large tensors into blocks, as far as there is room. The blocks count for the current
    /// session.
    pub fn put(&self, tensors: &mut Vec<NamedTensor>) -> Vec<BlockTensor> {
        let mut moved = Vec::new();
        let all = std::mem::take(tensors);
        for (position, (name, tensor)) in all.into_iter().enumerate() {
            let content = tensor.bytes().ok().filter(|bytes| bytes.len() >= BLOCKS_FROM);
            match content.and_then(|bytes| Some((self.put_one(bytes)?, bytes.len()))) {
                Some((BlockPlace { offset, block }, len)) => {
                    let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
                    moved.push(BlockTensor { position, name, dtype, shape, offset, len, block });
                }
                None => tensors.push((name, tensor)),
            }
        }
        moved
    }

    fn put_one(&self, bytes: &[u8]) -> Option<BlockPlace> {
        let memory = self.writer.memory_with(bytes.len());
        self.counted.lock().resize(memory).ok()?;
        self.writer.put(bytes)
    }

    /// Inserts the tensors that the other side has put into blocks. They are read in place.
    pub fn take(&self, moved: Vec<BlockTensor>, tensors: &mut Vec<NamedTensor>) -> Result<()> {
        ensure!(
            moved.len() <= MOST_TENSORS,
            InvalidArgument,
            "{} tensors of a message are in shared memory, which has {MOST_TENSORS} blocks",
            moved.len()
        );
        // All blocks at first: those behind an error are freed too.
        let place = |t: &BlockTensor| BlockPlace { offset: t.offset, block: t.block };
        let blocks: Vec<_> = moved
            .iter()
            .map(|t| self.reader.block(place(t), t.len).map(Bytes::from_owner))
            .collect();
        for (BlockTensor { position, name, dtype, shape, .. }, bytes) in
            moved.into_iter().zip(blocks)
        {
            let tensor = Tensor::from_bytes(dtype, shape, bytes?)?;
            ensure!(
                position <= tensors.len(),
                InvalidArgument,
                "the tensor {name} has place {position} among {} tensors",
                tensors.len()
            );
            tensors.insert(position, (name, tensor));
        }
        Ok(())
    }
}

/// The error of a message that refers to shared memory which this side has not mapped.
pub(crate) fn not_mapped() -> ferroflow_core::Error {
    err!(InvalidArgument, "the message refers to shared memory that was not mapped")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{DType, Limit, Limits, MemoryOwner, Shape};

    fn pair() -> (SharedBlocks, SharedBlocks) {
        let offer = BlockOffer::new("s").unwrap();
        let (server, answer) = SharedBlocks::accept(&offer.request).unwrap();
        (offer.accepted(&answer).unwrap(), server)
    }

    fn tensors() -> Vec<NamedTensor> {
        let large = |x: f32| Tensor::from_slice([200, 1000], &vec![x; 200_000]).unwrap();
        let named = |name: &str, tensor| (name.to_string(), tensor);
        vec![
            named("a", large(1.0)),
            named("b", Tensor::scalar(2f32)),
            named("c", large(3.0)),
            named("d", Tensor::string("text")),
        ]
    }

    #[test]
    fn large_tensors_go_through_blocks_and_keep_their_places() {
        let (client, server) = pair();
        for (from, to) in [(&client, &server), (&server, &client)] {
            let mut sent = tensors();
            let moved = from.put(&mut sent);
            assert_eq!((moved.len(), sent.len()), (2, 2));
            to.take(moved, &mut sent).unwrap();
            assert_eq!(sent, tensors());
        }
    }

    #[test]
    fn blocks_are_reused_when_their_tensors_are_dropped() {
        let (client, server) = pair();
        let mut first = tensors();
        let moved = client.put(&mut first);
        let places = |moved: &[BlockTensor]| moved.iter().map(|t| t.offset).collect::<Vec<_>>();
        let used = places(&moved);
        server.take(moved, &mut first).unwrap();
        let second = client.put(&mut tensors());
        assert!(places(&second).iter().all(|place| !used.contains(place)));
        drop(first);
        assert_eq!(places(&client.put(&mut tensors())), used);
    }

    #[test]
    fn blocks_count_for_the_session_that_fills_them() {
        let (_client, server) = pair();
        let limit = Limit { most: 1 << 20, ..Limits::DEFAULT.session_memory };
        let session = MemoryOwner::new("session 7", limit);
        let mut sent = tensors();
        let moved = session.run(|| server.put(&mut sent));
        assert_eq!(moved.len(), 1, "the second one goes through the connection");
        assert_eq!(sent.len(), 3);
        assert!(session.live() >= 800_000, "{}", session.live());
        drop(server);
        assert!(session.live() < 4096);
    }

    #[test]
    fn a_message_has_no_more_tensors_than_there_are_blocks() {
        let (client, server) = pair();
        let one = client.put(&mut tensors()).remove(0);
        let many = vec![BlockTensor { position: 0, ..one }; 1_000_000];
        assert!(server.take(many, &mut Vec::new()).is_err());
    }

    #[test]
    fn wrong_places_are_errors() {
        let (client, server) = pair();
        let mut rest = Vec::new();
        let good = client.put(&mut tensors()).remove(0);
        let wrong = [
            BlockTensor { position: 1, ..good.clone() },
            BlockTensor { offset: 1, ..good.clone() },
            BlockTensor { block: 77, ..good.clone() },
            BlockTensor { len: usize::MAX, ..good.clone() },
            BlockTensor { shape: Shape::from([7]), ..good.clone() },
            BlockTensor { dtype: DType::Double, ..good },
        ];
        for tensor in wrong {
            assert!(server.take(vec![tensor.clone()], &mut rest).is_err(), "{tensor:?}");
        }
        let mut request = BlockOffer::new("s").unwrap().request;
        request.blocks.name = "nothing".into();
        assert!(SharedBlocks::accept(&request).is_none());
    }
}
