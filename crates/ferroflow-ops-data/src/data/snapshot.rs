//! SaveDataset, LoadDataset and snapshots: datasets that are kept in files.

use super::dataset::*;
use super::function::Captured;
use super::scope::Scope;
use super::snapshot_files::{Packing, ShardReader, Snapshot, SnapshotWriter};
use super::task::{before_io, run_kernel};
use crate::prelude::*;
use ferroflow_op_kit::farmhash::fingerprint64;

/// The elements of one shard, from the `start`-th on.
struct Shard {
    path: String,
    packing: Packing,
    components: usize,
    start: u64,
    is_file: bool,
}

impl Dataset for Shard {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let make = if self.is_file { ShardReader::of_file } else { ShardReader::new };
        let mut reader = make(&self.path, self.packing, self.components);
        let mut skip = self.start;
        Ok(Elements::from_files(move || {
            while skip > 0 && reader.next()?.is_some() {
                skip -= 1;
            }
            reader.next()
        }))
    }
}

/// Datasets as elements.
struct Nested(Vec<DatasetRef>);

impl Dataset for Nested {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let mut all = self.0.clone().into_iter();
        Ok(Elements::from_fn(move || Ok(all.next().map(|one| vec![one.into_tensor()]))))
    }

    fn cardinality(&self) -> i64 {
        self.0.len() as i64
    }
}

/// The shards of a finished run as a dataset of datasets.
fn shards_of(
    folder: &str,
    snapshot: &Snapshot,
    packing: Packing,
    types: &ElementTypes,
) -> Result<DatasetRef> {
    let made = snapshot.shards(folder)?.into_iter().map(|path| {
        let components = types.dtypes.len();
        let shard = Shard { path, packing, components, start: 0, is_file: false };
        DatasetRef::new(shard, types.clone(), &[])
    });
    let nested = Nested(made.collect::<Result<Vec<_>>>()?);
    let inputs = nested.0.clone();
    let inputs: Vec<&DatasetRef> = inputs.iter().collect();
    DatasetRef::new(nested, ElementTypes::scalar(DType::Variant), &inputs)
}

/// The elements of a run, in the order that `reader` makes of its shards.
async fn read(reader: &Captured, scope: &Scope, shards: DatasetRef) -> Result<Elements> {
    let made = reader.call(scope, vec![shards.into_tensor()]).await?;
    match &made[..] {
        [t] => DatasetRef::of(t)?.iterate(scope),
        _ => bail!(InvalidArgument, "reader_func returns more than one dataset."),
    }
}

/// The shard that an element belongs to.
async fn shard_of(f: Option<&Captured>, scope: &Scope, element: &Tuple) -> Result<i64> {
    let Some(f) = f else { return Ok(0) };
    let result = f.call(scope, element.clone()).await?;
    match &result[..] {
        [t] if t.dtype() == DType::Int64 && t.rank() == 0 => t.scalar_value::<i64>(),
        _ => bail!(InvalidArgument, "`shard_func` must return a scalar int64."),
    }
}

/// A dataset that `LoadDataset` reads.
struct Load {
    folder: String,
    packing: Packing,
    types: ElementTypes,
    reader: Captured,
}

impl Dataset for Load {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let (folder, packing) = (self.folder.clone(), self.packing);
        Ok(Elements::new(Loading {
            folder,
            packing,
            types: self.types.clone(),
            reader: self.reader.clone(),
            scope: scope.clone(),
            elements: None,
        }))
    }

    fn cardinality(&self) -> i64 {
        let found = Snapshot::find(&self.folder).ok().flatten();
        found.and_then(|s| s.elements).map_or(UNKNOWN, |n| n as i64)
    }
}

struct Loading {
    folder: String,
    packing: Packing,
    types: ElementTypes,
    reader: Captured,
    scope: Scope,
    elements: Option<Elements>,
}

impl Produce for Loading {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            if self.elements.is_none() {
                before_io().await;
                let Some(snapshot) = Snapshot::find(&self.folder)? else {
                    bail!(NotFound, "Could not find metadata file [{}].", self.folder);
                };
                let shards = shards_of(&self.folder, &snapshot, self.packing, &self.types)?;
                self.elements = Some(read(&self.reader, &self.scope, shards).await?);
            }
            match &mut self.elements {
                Some(elements) => elements.next().await,
                None => Ok(None),
            }
        })
    }
}

/// Where elements are written, and in which form.
#[derive(Clone)]
struct Target {
    folder: String,
    hash: String,
    packing: Packing,
    types: ElementTypes,
    shard: Option<Captured>,
}

/// Passes elements on and writes them.
struct Writing {
    input: Elements,
    target: Target,
    scope: Scope,
    writer: Option<SnapshotWriter>,
}

impl Writing {
    fn new(input: Elements, target: Target, scope: &Scope) -> Writing {
        Writing { input, target, scope: scope.clone(), writer: None }
    }
}

impl Produce for Writing {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let next = self.input.next().await?;
            let shard = match &next {
                Some(element) => shard_of(self.target.shard.as_ref(), &self.scope, element).await?,
                None => 0,
            };
            before_io().await;
            if self.writer.is_none() {
                let Target { folder, hash, packing, types, .. } = &self.target;
                self.writer = Some(SnapshotWriter::create(folder, hash, *packing, types)?);
            }
            match (&next, &mut self.writer) {
                (Some(element), Some(writer)) => writer.add(shard, element)?,
                (None, writer) => writer.take().map_or(Ok(()), SnapshotWriter::finish)?,
                (Some(_), None) => {}
            }
            Ok(next)
        })
    }
}

/// A dataset whose elements are saved while they are iterated over.
struct Save {
    input: DatasetRef,
    target: Target,
}

impl Dataset for Save {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let input = self.input.iterate(scope)?;
        Ok(Elements::new(Writing::new(input, self.target.clone(), scope)))
    }

    fn cardinality(&self) -> i64 {
        self.input.cardinality()
    }
}

/// A dataset that is read from its snapshot if there is one, and else computed and written.
struct Kept {
    input: DatasetRef,
    target: Target,
    reader: Option<Captured>,
}

impl Dataset for Kept {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Keeping {
            input: self.input.clone(),
            target: self.target.clone(),
            reader: self.reader.clone(),
            scope: scope.clone(),
            elements: None,
        }))
    }

    fn cardinality(&self) -> i64 {
        self.input.cardinality()
    }
}

struct Keeping {
    input: DatasetRef,
    target: Target,
    reader: Option<Captured>,
    scope: Scope,
    elements: Option<Elements>,
}

/// Reads the snapshot if there is one, and else computes the elements and writes them.
async fn begin(
    input: DatasetRef,
    target: Target,
    reader: Option<Captured>,
    scope: Scope,
) -> Result<Elements> {
    let found = Snapshot::find(&target.folder)?.filter(|snapshot| snapshot.is_finished);
    let Some(snapshot) = found else {
        let input = input.iterate(&scope)?;
        return Ok(Elements::new(Writing::new(input, target, &scope)));
    };
    let Target { folder, packing, types, .. } = target;
    if let Some(reader) = reader {
        let shards = shards_of(&folder, &snapshot, packing, &types)?;
        return read(&reader, &scope, shards).await;
    }
    let (shards, components) = (snapshot.shards(&folder)?, types.dtypes.len());
    let readers: Vec<ShardReader> =
        shards.iter().map(|shard| ShardReader::new(shard, packing, components)).collect();
    let mut readers = readers.into_iter();
    let mut current = readers.next();
    Ok(Elements::from_files(move || {
        while let Some(reader) = &mut current {
            if let Some(element) = reader.next()? {
                return Ok(Some(element));
            }
            current = readers.next();
        }
        Ok(None)
    }))
}

impl Produce for Keeping {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            if self.elements.is_none() {
                before_io().await;
                let (input, target) = (self.input.clone(), self.target.clone());
                let begun = begin(input, target, self.reader.clone(), self.scope.clone()).await?;
                self.elements = Some(begun);
            }
            match &mut self.elements {
                Some(elements) => elements.next().await,
                None => Ok(None),
            }
        })
    }
}

fn save(init: &KernelInit<'_>) -> Result<KernelBox> {
    let packing = Packing::from_name(&init.string("compression")?)?;
    let uses = init.bool("use_shard_func")?;
    let shard = Arc::new(init.function("shard_func")?);
    Ok(KernelBox::new_async(move |mut ctx: AsyncCtx, done: Done, on: &InlineScope| {
        let scope = Scope::within(&ctx.step);
        let n = ctx.inputs.len();
        let parts = (|| {
            let input = DatasetRef::of(ctx.input(0)?)?.clone();
            let folder = String::from_utf8_lossy(ctx.input(1)?.scalar_string()?).into_owned();
            let captured = Captured::new(&shard, ctx.take_inputs(2..n)?);
            let (types, hash) = (input.types().clone(), String::new());
            let shard = uses.then_some(captured);
            let target = Target { folder, hash, packing, types, shard };
            Ok(Writing::new(input.iterate(&scope)?, target, &scope))
        })();
        let mut writing = match parts {
            Ok(writing) => writing,
            Err(e) => return done.fail(e),
        };
        run_kernel(&ctx.step, None, on, done, async move {
            while writing.next().await?.is_some() {}
            Ok(Vec::new())
        });
    }))
}

/// The folder of a snapshot. TensorFlow derives it from the graph of the dataset; we take the node
/// and the types of its elements.
fn snapshot_folder(path: &str, hash: u64) -> String {
    format!("{path}/{hash}")
}

fn own_hash(init: &KernelInit<'_>, types: &ElementTypes) -> u64 {
    fingerprint64(format!("{}:{types:?}", init.name()).as_bytes())
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SaveDataset")
        .doc("Writes a dataset to files, from which LoadDataset reads it.")
        .input("input_dataset: variant")
        .input("path: string")
        .input("shard_func_other_args: Tshard_func_args")
        .attr("compression: string = ''")
        .attr("shard_func: func")
        .attr("use_shard_func: bool = true")
        .attr("Tshard_func_args: list(type) >= 0")
        .stateful()
        .does_io()
        .shape(shape::unknown)
        .waits()
        .cpu(save);
    c.op("SaveDatasetV2")
        .doc("A dataset whose elements are written to files while they are iterated over.")
        .input("input_dataset: variant")
        .input("path: string")
        .input("shard_func_other_args: Tshard_func_args")
        .makes_dataset()
        .attr("compression: string = ''")
        .attr("shard_func: func")
        .attr("use_shard_func: bool = true")
        .attr("Tshard_func_args: list(type) >= 0")
        .element_types()
        .stateful()
        .cpu(|init| {
            let packing = Packing::from_name(&init.string("compression")?)?;
            let (uses, types) = (init.bool("use_shard_func")?, ElementTypes::from_attrs(init)?);
            let shard = Arc::new(init.function("shard_func")?);
            makes(init, move |ctx| {
                let n = ctx.num_inputs();
                let folder = text(ctx, 1, "path")?;
                let captured = Captured::from_inputs(&shard, ctx, 2..n)?;
                let (types, shard) = (types.clone(), uses.then_some(captured));
                let target = Target { folder, hash: String::new(), packing, types, shard };
                Ok(Save { input: input(ctx, 0)?, target })
            })
        });
    c.op("LoadDataset")
        .doc("A dataset that SaveDataset wrote.")
        .input("path: string")
        .input("reader_func_other_args: Treader_func_args")
        .makes_dataset()
        .element_types()
        .attr("compression: string = ''")
        .attr("reader_func: func")
        .attr("Treader_func_args: list(type) >= 0")
        .stateful()
        .cpu(|init| {
            let packing = Packing::from_name(&init.string("compression")?)?;
            let types = ElementTypes::from_attrs(init)?;
            let reader = Arc::new(init.function("reader_func")?);
            makes(init, move |ctx| {
                let n = ctx.num_inputs();
                Ok(Load {
                    folder: text(ctx, 0, "path")?,
                    packing,
                    types: types.clone(),
                    reader: Captured::from_inputs(&reader, ctx, 1..n)?,
                })
            })
        });
    c.op("SnapshotDatasetV2")
        .doc("A dataset that is computed once, written to files, and read from them afterwards.")
        .input("input_dataset: variant")
        .input("path: string")
        .input("reader_func_other_args: Treader_func_args")
        .input("shard_func_other_args: Tshard_func_args")
        .makes_dataset()
        .element_types()
        .attr("compression: string = ''")
        .attr("reader_prefix: string = ''")
        .attr("writer_prefix: string = ''")
        .attr("hash_valid: bool = false")
        .attr("hash: int = 0")
        .attr("reader_func: func")
        .attr("shard_func: func")
        .attr("Treader_func_args: list(type) >= 0")
        .attr("Tshard_func_args: list(type) >= 0")
        .metadata_attr()
        .cpu(|init| {
            let packing = Packing::from_name(&init.string("compression")?)?;
            let types = ElementTypes::from_attrs(init)?;
            let hash = match init.bool("hash_valid")? {
                true => init.int("hash")? as u64,
                false => own_hash(init, &types),
            };
            let reader = Arc::new(init.function("reader_func")?);
            let shard = Arc::new(init.function("shard_func")?);
            let middle = 2 + init.dtypes("Treader_func_args")?.len();
            makes(init, move |ctx| {
                let n = ctx.num_inputs();
                let folder = snapshot_folder(&text(ctx, 1, "path")?, hash);
                let reader = Captured::from_inputs(&reader, ctx, 2..middle)?;
                let shard = Some(Captured::from_inputs(&shard, ctx, middle..n)?);
                let (types, hash) = (types.clone(), hash.to_string());
                let target = Target { folder, hash, packing, types, shard };
                Ok(Kept { input: input(ctx, 0)?, target, reader: Some(reader) })
            })
        });
    c.op("SnapshotDataset")
        .doc("A dataset that is computed once, written to files, and read from them afterwards.")
        .input("input_dataset: variant")
        .input("path: string")
        .makes_dataset()
        .element_types()
        .attr("compression: string = ''")
        .attr("reader_path_prefix: string = ''")
        .attr("writer_path_prefix: string = ''")
        .attr("shard_size_bytes: int = 10737418240")
        .attr("pending_snapshot_expiry_seconds: int = 86400")
        .attr("num_reader_threads: int = 1")
        .attr("reader_buffer_size: int = 1")
        .attr("num_writer_threads: int = 1")
        .attr("writer_buffer_size: int = 1")
        .attr("shuffle_on_read: bool = false")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .attr("mode: string = 'auto'")
        .attr("snapshot_name: string = ''")
        .cpu(|init| {
            let packing = Packing::from_name(&init.string("compression")?)?;
            let types = ElementTypes::from_attrs(init)?;
            let mode = init.string("mode")?;
            ensure!(
                mode == "auto",
                Unimplemented,
                "SnapshotDataset with mode '{mode}': only 'auto' is supported"
            );
            let name = init.string("snapshot_name")?;
            let hash = match name.is_empty() {
                true => own_hash(init, &types),
                false => fingerprint64(name.as_bytes()),
            };
            makes(init, move |ctx| {
                let folder = snapshot_folder(&text(ctx, 1, "path")?, hash);
                let (types, hash) = (types.clone(), hash.to_string());
                let target = Target { folder, hash, packing, types, shard: None };
                Ok(Kept { input: input(ctx, 0)?, target, reader: None })
            })
        });
    c.op("SnapshotDatasetReader")
        .doc("The elements of one shard of a snapshot.")
        .input("shard_dir: string")
        .input("start_index: int64")
        .makes_dataset()
        .element_types()
        .attr("compression: string = ''")
        .attr("version: int")
        .cpu(|init| {
            let packing = Packing::from_name(&init.string("compression")?)?;
            let version = init.int("version")?;
            ensure!(
                version == 2,
                Unimplemented,
                "snapshot files of version {version} cannot be read, only those of version 2"
            );
            let components = init.dtypes("output_types")?.len();
            makes(init, move |ctx| {
                let start = u64::try_from(scalar::<i64>(ctx, 1, "start_index")?).unwrap_or(0);
                let path = text(ctx, 0, "shard_dir")?;
                Ok(Shard { path, packing, components, start, is_file: false })
            })
        });
    c.op("SnapshotChunkDataset")
        .doc("The elements of one file of a snapshot.")
        .input("chunk_file: string")
        .makes_dataset()
        .element_types()
        .attr("compression: string = ''")
        .cpu(|init| {
            let packing = Packing::from_name(&init.string("compression")?)?;
            let components = init.dtypes("output_types")?.len();
            makes(init, move |ctx| {
                let path = text(ctx, 0, "chunk_file")?;
                Ok(Shard { path, packing, components, start: 0, is_file: true })
            })
        });
    c.op("SnapshotNestedDatasetReader")
        .doc("A dataset of datasets.")
        .input("inputs: N * variant")
        .makes_dataset()
        .element_types()
        .attr("N: int >= 1")
        .cpu(|init| {
            makes(init, move |ctx| {
                Ok(Nested((0..ctx.num_inputs()).map(|i| input(ctx, i)).collect::<Result<_>>()?))
            })
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    #[test]
    fn a_shard_of_each_packing_is_read_as_it_was_written() {
        let dir = std::env::temp_dir().join(format!("ferroflow-snapshot-{}", std::process::id()));
        let types = ElementTypes {
            dtypes: vec![DType::Int64, DType::String],
            shapes: vec![PartialShape::scalar(); 2],
        };
        for name in ["", "GZIP", "SNAPPY"] {
            let folder = dir.join(format!("of{name}")).to_string_lossy().into_owned();
            let packing = Packing::from_name(name).unwrap();
            let mut writer = SnapshotWriter::create(&folder, "", packing, &types).unwrap();
            for i in 0..7i64 {
                let element = [Tensor::scalar(i), Tensor::string(format!("text {i}"))];
                writer.add(i % 2, &element).unwrap();
            }
            assert!(Snapshot::find(&folder).unwrap().is_none(), "not finished yet");
            writer.finish().unwrap();
            let found = Snapshot::find(&folder).unwrap().unwrap();
            assert!(found.is_finished && found.elements == Some(7));
            let shards = found.shards(&folder).unwrap();
            assert_eq!(shards.len(), 2);
            let read = made(
                dataset("SnapshotDatasetReader", &types.dtypes)
                    .attr("compression", name)
                    .attr("version", 2i64)
                    .input(Tensor::string(shards[1].clone()))
                    .input(Tensor::scalar(1i64)),
            );
            let got = elements(&read).unwrap();
            assert_eq!(got.len(), 2);
            assert_eq!(got[0], [Tensor::scalar(3i64), Tensor::string("text 3")]);
            let chunk = made(
                dataset("SnapshotChunkDataset", &types.dtypes)
                    .attr("compression", name)
                    .input(Tensor::string(format!("{}/00000000.snapshot", shards[0]))),
            );
            assert_eq!(elements(&chunk).unwrap().len(), 4);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_snapshot_is_written_once_and_then_read() {
        let dir = std::env::temp_dir().join(format!("ferroflow-kept-{}", std::process::id()));
        let path = dir.to_string_lossy().into_owned();
        let kept = |n: i64| {
            made(
                dataset("SnapshotDataset", &[DType::Int64])
                    .attr("snapshot_name", "numbers")
                    .input(range(n))
                    .input(Tensor::string(path.clone())),
            )
        };
        assert_eq!(longs(&kept(3)).concat(), [0, 1, 2]);
        assert_eq!(longs(&kept(9)).concat(), [0, 1, 2], "read from the files");
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(longs(&kept(4)).concat(), [0, 1, 2, 3]);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn damaged_metadata_is_an_error() {
        let dir = std::env::temp_dir().join(format!("ferroflow-damaged-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("snapshot.metadata"), b"\x12\xff\x01").unwrap();
        let folder = dir.to_string_lossy();
        assert_eq!(Snapshot::find(&folder).err().unwrap().code(), Code::DataLoss);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
