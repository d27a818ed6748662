//! The files of saved datasets and snapshots, as TensorFlow writes them: a folder for each run, in
//! it a folder for each shard, in it files of records. A record is one component of an element.

use super::dataset::{ElementTypes, Tuple};
use crate::io::records::Input;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::files;
use ferroflow_op_kit::file::{file_error, local, read_file};
use ferroflow_op_kit::protobuf::{Message, fields};
use ferroflow_op_kit::tensor_proto::{self, Strings};
use ferroflow_op_kit::tfrecord::{RecordCompression, RecordWriter, write_record};
use std::collections::BTreeMap;
use std::io::{Cursor, Write};

/// Bytes of records that are compressed together.
const BLOCK: usize = 256 << 10;

/// How the records of a file are compressed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Packing {
    Whole(RecordCompression),
    /// Blocks, each with its length before it.
    Snappy,
}

impl Packing {
    pub fn from_name(name: &str) -> Result<Packing> {
        Ok(match name {
            "SNAPPY" | "AUTO" => Packing::Snappy,
            "NONE" => Packing::Whole(RecordCompression::None),
            other => Packing::Whole(RecordCompression::from_name(other)?),
        })
    }
}

fn make_folder(path: &str) -> Result<()> {
    files::create_dir_all(local(path.as_bytes())).map_err(|e| file_error(path, &e))
}

enum ShardWriter {
    Whole(RecordWriter),
    Snappy { name: String, file: files::OpenFile, waiting: Vec<u8> },
}

impl ShardWriter {
    fn create(run: &str, shard: i64, packing: Packing) -> Result<ShardWriter> {
        let folder = format!("{run}/{shard:08}.shard");
        make_folder(&folder)?;
        let name = format!("{folder}/00000000.snapshot");
        let path = local(name.as_bytes());
        Ok(match packing {
            Packing::Whole(how) => ShardWriter::Whole(RecordWriter::create_compressed(path, how)?),
            Packing::Snappy => {
                let file = files::create(path).map_err(|e| file_error(&name, &e))?;
                ShardWriter::Snappy { name, file, waiting: Vec::new() }
            }
        })
    }

    fn write(&mut self, record: &[u8]) -> Result<()> {
        match self {
            ShardWriter::Whole(writer) => writer.write(record),
            ShardWriter::Snappy { name, waiting, .. } => {
                write_record(waiting, record).map_err(|e| file_error(name, &e))?;
                if waiting.len() >= BLOCK { self.flush() } else { Ok(()) }
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        let ShardWriter::Snappy { name, file, waiting } = self else { return Ok(()) };
        if waiting.is_empty() {
            return Ok(());
        }
        let packed = snap::raw::Encoder::new().compress_vec(waiting);
        let packed =
            packed.map_err(|e| err!(Internal, "cannot compress a block of {name}: {e}"))?;
        waiting.clear();
        let length = (packed.len() as u32).to_be_bytes();
        let written = file.write_all(&length).and_then(|()| file.write_all(&packed));
        written.map_err(|e| file_error(name, &e))
    }

    fn finish(mut self) -> Result<()> {
        self.flush()?;
        match self {
            ShardWriter::Whole(writer) => writer.finish(),
            ShardWriter::Snappy { name, file, .. } => {
                files::sync_file(&file).map_err(|e| file_error(&name, &e))
            }
        }
    }
}

/// A dataset being written.
pub(super) struct SnapshotWriter {
    folder: String,
    hash: String,
    run: String,
    packing: Packing,
    types: ElementTypes,
    shards: BTreeMap<i64, ShardWriter>,
    elements: u64,
}

impl SnapshotWriter {
    /// Begins a new run in a folder. The files of an earlier run stay until this one is complete.
    pub fn create(
        folder: &str,
        hash: &str,
        packing: Packing,
        types: &ElementTypes,
    ) -> Result<SnapshotWriter> {
        make_folder(folder)?;
        let writer = SnapshotWriter {
            folder: folder.into(),
            hash: hash.into(),
            run: ferroflow_op_kit::philox::entropy().to_string(),
            packing,
            types: types.clone(),
            shards: BTreeMap::new(),
            elements: 0,
        };
        Ok(writer)
    }

    pub fn add(&mut self, shard: i64, element: &[Tensor]) -> Result<()> {
        ensure!(
            (0..1 << 20).contains(&shard),
            InvalidArgument,
            "the shard function must return a number from 0 to 2^20, got {shard}"
        );
        let writer = match self.shards.entry(shard) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(free) => {
                let run = format!("{}/{}", self.folder, self.run);
                free.insert(ShardWriter::create(&run, shard, self.packing)?)
            }
        };
        for t in element {
            writer.write(tensor_proto::encode(t, Strings::Content)?.as_bytes())?;
        }
        self.elements += 1;
        Ok(())
    }

    /// Makes the run the one that readers find.
    pub fn finish(self) -> Result<()> {
        for writer in self.shards.into_values() {
            writer.finish()?;
        }
        let mut m = Message::new();
        m.bytes_if(1, self.hash.as_bytes()).bytes_if(2, self.run.as_bytes());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        m.varint_if(3, now.map_or(0, |now| now.as_micros() as u64)).varint(4, 2);
        let dtypes: Vec<u8> = self.types.dtypes.iter().map(|d| d.number() as u8).collect();
        m.bytes_if(5, &dtypes).varint_if(6, self.elements).varint(1000, 1);
        let (name, new) =
            (metadata_file(&self.folder), format!("{}.new", metadata_file(&self.folder)));
        let written = files::create(local(new.as_bytes()))
            .and_then(|mut file| {
                file.write_all(m.as_bytes())?;
                files::sync_file(&file)
            })
            .and_then(|()| files::rename(local(new.as_bytes()), local(name.as_bytes())));
        written.map_err(|e| file_error(&name, &e))
    }
}

fn metadata_file(folder: &str) -> String {
    format!("{folder}/snapshot.metadata")
}

/// A finished run.
#[derive(Clone, Default)]
pub(super) struct Snapshot {
    pub run: String,
    pub version: u64,
    pub elements: Option<u64>,
    pub is_finished: bool,
}

impl Snapshot {
    /// The run in a folder; `None` if there is none.
    pub fn find(folder: &str) -> Result<Option<Snapshot>> {
        let name = metadata_file(folder);
        if !files::exists(local(name.as_bytes())) {
            return Ok(None);
        }
        let bytes = read_file(&name)?;
        let parsed = (|| {
            let mut found = Snapshot::default();
            for (field, value) in fields(&bytes)? {
                match field {
                    2 => found.run = String::from_utf8(value.as_bytes()?.to_vec()).ok()?,
                    4 => found.version = value.as_varint()?,
                    6 => found.elements = Some(value.as_varint()?),
                    1000 => found.is_finished = value.as_varint()? != 0,
                    _ => {}
                }
            }
            Some(found)
        })();
        let found = parsed.filter(|s| !s.run.contains('/') && s.run != "..");
        let found = found.ok_or_else(|| err!(DataLoss, "{name} is damaged"))?;
        ensure!(
            found.version == 2,
            Unimplemented,
            "{name}: files of version {} cannot be read, only those of version 2",
            found.version
        );
        Ok(Some(found))
    }

    /// The folders of its shards, in order.
    pub fn shards(&self, folder: &str) -> Result<Vec<String>> {
        let run = format!("{folder}/{}", self.run);
        if !files::exists(local(run.as_bytes())) {
            return Ok(Vec::new());
        }
        let names = files::read_dir(local(run.as_bytes())).map_err(|e| file_error(&run, &e))?;
        let mut shards: Vec<String> = names
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .filter(|name| name.ends_with(".shard"))
            .map(|name| format!("{run}/{name}"))
            .collect();
        shards.sort();
        Ok(shards)
    }
}

/// Reads the elements of a shard, file after file.
pub(super) struct ShardReader {
    shard: String,
    next_file: u32,
    open: Option<Input>,
    packing: Packing,
    components: usize,
    /// The shard is one file instead of a folder of them.
    is_file: bool,
}

impl ShardReader {
    pub fn new(shard: &str, packing: Packing, components: usize) -> ShardReader {
        let shard = shard.to_string();
        ShardReader { shard, next_file: 0, open: None, packing, components, is_file: false }
    }

    /// The elements of one file.
    pub fn of_file(name: &str, packing: Packing, components: usize) -> ShardReader {
        ShardReader { is_file: true, ..ShardReader::new(name, packing, components) }
    }

    pub fn next(&mut self) -> Result<Option<Tuple>> {
        loop {
            if let Some(file) = &mut self.open {
                if let Some(element) = next_element(file, self.components, &self.shard)? {
                    return Ok(Some(element));
                }
                self.open = None;
            }
            let name = match self.is_file {
                true if self.next_file > 0 => return Ok(None),
                true => self.shard.clone(),
                false => format!("{}/{:08}.snapshot", self.shard, self.next_file),
            };
            if !self.is_file && !files::exists(local(name.as_bytes())) {
                return Ok(None);
            }
            self.next_file += 1;
            self.open = Some(open(&name, self.packing)?);
        }
    }
}

fn open(name: &str, packing: Packing) -> Result<Input> {
    match packing {
        Packing::Whole(how) => Input::open(name, how),
        Packing::Snappy => {
            let records = unpacked(&read_file(name)?)
                .ok_or_else(|| err!(DataLoss, "{name}: a compressed block is damaged"))?;
            Ok(Input::new(name, Cursor::new(records), RecordCompression::None))
        }
    }
}

/// The contents of blocks.
fn unpacked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (block, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        all.extend(crate::io::bundle::unpack_snappy(block)?);
        rest = after;
    }
    Some(all)
}

fn next_element(file: &mut Input, components: usize, shard: &str) -> Result<Option<Tuple>> {
    let mut element = Vec::with_capacity(components);
    for i in 0..components {
        let Some((_, record)) = file.record()? else {
            ensure!(i == 0, DataLoss, "{shard} ends in the middle of an element");
            return Ok(None);
        };
        let decoded = decode(&record);
        element.push(decoded.ok_or_else(|| err!(DataLoss, "{shard}: a record is not a tensor"))?);
    }
    Ok(Some(element))
}

fn decode(record: &Bytes) -> Option<Tensor> {
    tensor_proto::decode(record)
}
