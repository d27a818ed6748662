//! Parsers of bytes from other ranks, for the fuzz targets. An input may be an error; it must not
//! panic or take memory that it does not hold itself.

use crate::elastic::{DriverMessage, WorkerMessage};
use crate::engine::{Decision, RankMessage};
use crate::rendezvous::Hello;
use crate::signature::MessageHeader;
use crate::wire::{FieldReader, read_frame};

/// Frames of the rendezvous and the control connections, and the messages in them.
pub fn mesh_frames(data: &[u8]) {
    let mut from = data;
    while let Ok(Some(frame)) = read_frame(&mut from) {
        let _ = Hello::decode(&frame);
        let _ = RankMessage::decode_all(&frame);
        let _ = Decision::decode_all(&frame);
        let _ = crate::control::read_cause(&frame);
        let mut fields = FieldReader(&frame);
        while fields.text().is_ok() && !fields.is_empty() {}
    }
    let _ = RankMessage::decode_all(data);
    let _ = Decision::decode_all(data);
    let _ = Hello::decode(data);
    if let Some(header) = data.first_chunk() {
        let _ = MessageHeader::decode(header);
    }
}

/// Frames between an elastic worker and its driver.
pub fn elastic_frames(data: &[u8]) {
    let mut from = data;
    while let Ok(Some(frame)) = read_frame(&mut from) {
        let _ = WorkerMessage::decode(&frame);
        let _ = DriverMessage::decode(&frame);
    }
    let _ = WorkerMessage::decode(data);
    let _ = DriverMessage::decode(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_testing::fuzz_bytes;

    #[test]
    fn frames_of_ranks_do_not_panic() {
        let hello = [&24u32.to_le_bytes()[..], &[1; 24]].concat();
        fuzz_bytes(mesh_frames, &[hello]);
    }

    #[test]
    fn frames_of_elastic_jobs_do_not_panic() {
        let done = [&1u32.to_le_bytes()[..], &[3]].concat();
        let formed = [&9u32.to_le_bytes()[..], &[4, 1, 0, 0, 0, 0, 0, 0, 0]].concat();
        fuzz_bytes(elastic_frames, &[done, formed]);
    }
}
