//! CacheDataset: keeps all elements of the first iteration, in memory or in files.

use super::dataset::*;
use super::handle::{delete, put_anonymous};
use super::iterator::find;
use super::scope::Scope;
use super::seeds::dummy;
use super::task::before_io;
use super::window::Kept;
use crate::io::bundle::{BundleReader, BundleWriter};
use crate::prelude::*;
use ferroflow_core::files;
use ferroflow_op_kit::file::{file_error, local};
use parking_lot::Mutex;
use std::io::Write;

/// All elements of a dataset, after the first iteration.
#[derive(Default)]
pub(super) struct MemoryCache(Mutex<Option<Arc<Vec<Tuple>>>>);

impl Resource for MemoryCache {
    fn describe(&self) -> String {
        "memory cache".into()
    }
}

struct InMemory {
    input: DatasetRef,
    cache: Arc<MemoryCache>,
}

impl Dataset for InMemory {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let kept = self.cache.0.lock().clone();
        match kept {
            Some(all) => Kept(all).iterate(scope),
            None => Ok(Elements::new(Keeping {
                input: self.input.iterate(scope)?,
                all: Vec::new(),
                cache: self.cache.clone(),
            })),
        }
    }

    fn cardinality(&self) -> i64 {
        self.input.cardinality()
    }
}

struct Keeping {
    input: Elements,
    all: Vec<Tuple>,
    cache: Arc<MemoryCache>,
}

impl Produce for Keeping {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let next = self.input.next().await?;
            match &next {
                Some(element) => self.all.push(element.clone()),
                None => {
                    let all = Arc::new(std::mem::take(&mut self.all));
                    self.cache.0.lock().get_or_insert(all);
                }
            }
            Ok(next)
        })
    }
}

struct InFile {
    input: DatasetRef,
    prefix: String,
}

impl Dataset for InFile {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(CacheIteration {
            input: self.input.clone(),
            prefix: self.prefix.clone(),
            scope: scope.clone(),
            elements: None,
        }))
    }

    fn cardinality(&self) -> i64 {
        self.input.cardinality()
    }
}

/// An iteration that reads the files of the cache, or writes them if there are none.
struct CacheIteration {
    input: DatasetRef,
    prefix: String,
    scope: Scope,
    /// Known with the first element.
    elements: Option<Elements>,
}

impl Produce for CacheIteration {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            if self.elements.is_none() {
                before_io().await;
                let elements = match BundleReader::is_there(&self.prefix) {
                    true => self.read()?,
                    false => self.write()?,
                };
                self.elements = Some(elements);
            }
            match &mut self.elements {
                Some(elements) => elements.next().await,
                None => Ok(None),
            }
        })
    }
}

impl CacheIteration {
    fn read(&self) -> Result<Elements> {
        let components = self.input.types().dtypes.len();
        let reader = BundleReader::open(&self.prefix)?;
        let mut at = 0;
        Ok(Elements::from_files(move || {
            if reader.find(&key(at, 0, components)).is_err() {
                return Ok(None);
            }
            at += 1;
            let all = (0..components).map(|i| reader.read(&key(at - 1, i, components)));
            all.collect::<Result<Tuple>>().map(Some)
        }))
    }

    fn write(&self) -> Result<Elements> {
        Ok(Elements::new(Writing {
            input: self.input.iterate(&self.scope)?,
            prefix: self.prefix.clone(),
            components: self.input.types().dtypes.len(),
            file: None,
            at: 0,
        }))
    }
}

/// TensorFlow's name for component `i` of element number `at` in the bundle.
fn key(at: usize, i: usize, components: usize) -> String {
    let width = components.saturating_sub(1).to_string().len();
    format!("{at:>7}_{i:>width$}")
}

struct Writing {
    input: Elements,
    prefix: String,
    components: usize,
    /// Opened with the first element.
    file: Option<(BundleWriter, Lock)>,
    at: usize,
}

impl Produce for Writing {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let next = self.input.next().await?;
            before_io().await;
            if self.file.is_none() {
                let lock = Lock::take(&self.prefix)?;
                self.file = Some((BundleWriter::create(&self.prefix)?, lock));
            }
            let Some(element) = &next else {
                if let Some((writer, lock)) = self.file.take() {
                    writer.finish()?;
                    drop(lock);
                }
                return Ok(None);
            };
            ensure!(
                element.len() == self.components,
                Internal,
                "Upstream iterator returned invalid number of tensors. Expected {} got: {}",
                self.components,
                element.len()
            );
            if let Some((writer, _)) = &mut self.file {
                for (i, t) in element.iter().enumerate() {
                    writer.add(&key(self.at, i, self.components), t)?;
                }
            }
            self.at += 1;
            Ok(next)
        })
    }
}

/// A lock file that marks a cache as being written; removed on drop.
struct Lock(String);

impl Lock {
    fn take(prefix: &str) -> Result<Lock> {
        let name = format!("{prefix}_0.lockfile");
        let file = files::create_new(local(name.as_bytes()));
        match file {
            Ok(mut file) => {
                let lock = Lock(name);
                file.write_all(b"written by a running iterator")
                    .map_err(|e| file_error(&lock.0, &e))?;
                Ok(lock)
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => bail!(
                AlreadyExists,
                "There appears to be a concurrent caching iterator running - cache lockfile already \
                 exists ('{name}'). If you are sure no other running TF computations are using this \
                 cache prefix, delete the lockfile and re-initialize the iterator."
            ),
            Err(e) => Err(file_error(&name, &e)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Ignore the error: no caller is left. The next writer reports it.
        let name = std::mem::take(&mut self.0);
        files::soon(move || drop(files::remove_file(local(name.as_bytes()))));
    }
}

enum Cache {
    InMemory(InMemory),
    InFile(InFile),
}

impl Dataset for Cache {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        match self {
            Cache::InMemory(d) => d.iterate(scope),
            Cache::InFile(d) => d.iterate(scope),
        }
    }

    fn cardinality(&self) -> i64 {
        match self {
            Cache::InMemory(d) => d.cardinality(),
            Cache::InFile(d) => d.cardinality(),
        }
    }
}

/// The cache that input 2 names, if there is such an input and such a cache; else a new one.
fn memory_cache(ctx: &Ctx<'_>) -> Result<Arc<MemoryCache>> {
    if ctx.num_inputs() < 3 {
        return Ok(Arc::default());
    }
    match find(ctx.step(), ctx.handle(2)?) {
        Err(e) if e.code() == Code::NotFound => Ok(Arc::default()),
        found => found,
    }
}

fn cache(init: &KernelInit<'_>) -> Result<KernelBox> {
    makes(init, |ctx| {
        let (input, prefix) = (input(ctx, 0)?, text(ctx, 1, "filename")?);
        Ok(if prefix.is_empty() {
            Cache::InMemory(InMemory { input, cache: memory_cache(ctx)? })
        } else {
            Cache::InFile(InFile { input, prefix })
        })
    })
}

pub(crate) fn register(c: &mut Catalog) {
    for is_shared in [false, true] {
        let op = match is_shared {
            false => c.op("CacheDataset").inputs(&["input_dataset: variant", "filename: string"]),
            true => c
                .op("CacheDatasetV2")
                .inputs(&["input_dataset: variant", "filename: string", "cache: resource"])
                .stateful(),
        };
        op.doc("A dataset whose elements are kept, in memory or in `filename`.")
            .makes_dataset()
            .element_types()
            .metadata_attr()
            .cpu(cache);
    }
    c.op("AnonymousMemoryCache")
        .doc("A place for datasets to keep their elements.")
        .output("handle: resource")
        .output("deleter: variant")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(|ctx| {
            let name = "tensorflow::data::MemoryCacheManager";
            put_anonymous(ctx, "MemoryCache", name, MemoryCache::default())
        });
    c.op("DeleteMemoryCache")
        .doc("Deletes a memory cache.")
        .input("handle: resource")
        .input("deleter: variant")
        .stateful()
        .shape(shape::unknown)
        .cpu_fn(delete::<MemoryCache>);
    c.op("DummyMemoryCache")
        .doc("A handle to no memory cache.")
        .output("handle: resource")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(dummy);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    #[test]
    fn a_cache_in_files_is_read_again_and_written_by_one_at_a_time() {
        let dir = std::env::temp_dir().join(format!("ferroflow-cache-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let prefix = dir.join("kept").to_string_lossy().into_owned();
        let cached = |n: i64| {
            let op = dataset("CacheDataset", &[DType::Int64]).input(range(n));
            made(op.input(Tensor::string(prefix.clone())))
        };
        let lock = Lock::take(&prefix).unwrap();
        let e = elements(&cached(3)).unwrap_err();
        assert_eq!(e.code(), Code::AlreadyExists);
        drop(lock);
        assert_eq!(longs(&cached(3)).concat(), [0, 1, 2]);
        assert_eq!(longs(&cached(99)).concat(), [0, 1, 2]);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(key(12, 3, 11), "     12_ 3");
    }

    #[test]
    fn a_cache_in_memory_is_complete_or_not_there() {
        let cache = made(
            dataset("CacheDataset", &[DType::Int64]).input(range(3)).input(Tensor::string("")),
        );
        let take = |n: i64| {
            let op = dataset("TakeDataset", &[DType::Int64]).input(cache.clone());
            longs(&made(op.input(Tensor::scalar(n)))).concat()
        };
        assert_eq!(take(2), [0, 1]);
        assert_eq!(take(-1), [0, 1, 2]);
        assert_eq!(take(-1), [0, 1, 2]);
    }
}
