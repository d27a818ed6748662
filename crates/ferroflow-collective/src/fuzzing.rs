//! Parsers of bytes from other ranks, for the fuzz targets. A parser may return an error. It must
//! not panic, and its memory must be proportional to the input.

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

/// Answers of a launcher that speaks PMI-1.
pub fn pmi_answers(data: &[u8]) {
    crate::exchange::fuzz_pmi(data);
}

/// Valid inputs of [`pmi_answers`].
pub fn sample_pmi_answers() -> Vec<Vec<u8>> {
    let answers = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n\
                   cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=64\n\
                   cmd=my_kvsname kvsname=kvs_7\ncmd=put_result rc=0 msg=success\n\
                   cmd=barrier_out\ncmd=get_result rc=0 msg=success value=2.10.0.\n\
                   cmd=get_result rc=0 msg=success value=0.1:1\ncmd=finalize_ack\n";
    vec![answers.into()]
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
    fn answers_of_launchers_do_not_panic() {
        fuzz_bytes(pmi_answers, &sample_pmi_answers());
    }

    #[test]
    fn frames_of_elastic_jobs_do_not_panic() {
        let done = [&1u32.to_le_bytes()[..], &[3]].concat();
        let formed = [&9u32.to_le_bytes()[..], &[4, 1, 0, 0, 0, 0, 0, 0, 0]].concat();
        fuzz_bytes(elastic_frames, &[done, formed]);
    }
}
