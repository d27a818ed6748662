//! Splits a file into the records that readers return.

use crate::io::lmdb::LmdbReader;
use crate::io::records::Input;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::CancelToken;
use ferroflow_op_kit::file::read_file;
use ferroflow_op_kit::tfrecord::RecordCompression;

/// The unit that a reader treats as a record.
#[derive(Clone, Debug)]
pub(super) enum Format {
    /// The name itself.
    Identity,
    WholeFile,
    Lines {
        skip: u64,
    },
    Fixed {
        header: u64,
        record: u64,
        footer: u64,
        hop: u64,
        compression: RecordCompression,
    },
    Records {
        compression: RecordCompression,
    },
    Lmdb,
}

/// A key and a value.
pub(super) type Pair = (Bytes, Bytes);

/// A file (or other named source) that is being read.
pub(super) struct Work {
    name: String,
    state: State,
    /// Records, or lines, so far.
    count: u64,
}

enum State {
    Single(Format),
    Lines(Input),
    Records(Input),
    Lmdb(Box<LmdbReader>),
    /// The body of a file without header and footer, and its remaining length.
    Fixed {
        body: Bytes,
        at: usize,
        record: usize,
        hop: usize,
    },
    Ended,
}

impl Work {
    /// Opens a file. Cancelling the step ends it while it skips lines.
    pub fn start(format: &Format, name: &str, cancel: &CancelToken) -> Result<Work> {
        let mut count = 0;
        let state = match *format {
            Format::Identity | Format::WholeFile => State::Single(format.clone()),
            Format::Lines { skip } => {
                let mut input = Input::open(name, RecordCompression::None)?;
                while count < skip && input.line()?.is_some() {
                    cancel.check()?;
                    count += 1;
                }
                State::Lines(input)
            }
            Format::Records { compression } => State::Records(Input::open(name, compression)?),
            Format::Lmdb => State::Lmdb(Box::new(LmdbReader::open(name)?)),
            Format::Fixed { header, record, footer, hop, compression } => {
                let whole = Bytes::from(Input::open(name, compression)?.bytes(u64::MAX)?);
                let end = (whole.len() as u64).saturating_sub(footer);
                let start = std::cmp::min(header, end);
                State::Fixed {
                    body: whole.slice(start as usize..end as usize),
                    at: 0,
                    record: record as usize,
                    hop: if hop == 0 { record as usize } else { hop as usize },
                }
            }
        };
        Ok(Work { name: name.into(), state, count })
    }

    /// Whether it is known that there are no more records.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// The next record; `None` when there are no more.
    pub fn next(&mut self) -> Result<Option<Pair>> {
        let numbered = |name: &str, n: u64| Bytes::from(format!("{name}:{n}"));
        match &mut self.state {
            State::Ended => Ok(None),
            State::Single(format) => {
                let name = Bytes::copy_from_slice(self.name.as_bytes());
                let value = match format {
                    Format::Identity => name.clone(),
                    _ => Bytes::from(read_file(&self.name)?),
                };
                self.state = State::Ended;
                Ok(Some((name, value)))
            }
            State::Lines(input) => {
                let line = input.line()?;
                self.count += 1;
                Ok(line.map(|line| (numbered(&self.name, self.count), line)))
            }
            State::Records(input) => {
                let record = input.record()?;
                Ok(record.map(|(at, record)| (numbered(&self.name, at), record)))
            }
            State::Lmdb(reader) => reader.next(),
            State::Fixed { body, at, record, hop } => {
                let Some(end) = at.checked_add(*record).filter(|&end| end <= body.len()) else {
                    return Ok(None);
                };
                let value = body.slice(*at..end);
                *at = at.saturating_add(*hop);
                self.count += 1;
                Ok(Some((numbered(&self.name, self.count - 1), value)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_step_skips_no_more_lines() {
        let cancel = CancelToken::new();
        cancel.cancel(err!(Cancelled, "the client has gone"));
        let file = std::env::temp_dir().join(format!("ferroflow-skipped-{}", std::process::id()));
        std::fs::write(&file, "one\ntwo\n").unwrap();
        let result =
            Work::start(&Format::Lines { skip: u64::MAX }, file.to_str().unwrap(), &cancel);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(result.err().unwrap().code(), Code::Cancelled);
    }
}
