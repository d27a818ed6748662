//! Categorical columns: map each value of a feature to a category id.

use super::dense::Bucketized;
use super::features::{Feature, Features, SparseOutput, as_matrix};
use crate::graph::{Graph, keys};
use crate::output::Output;
use crate::value::{IntoTensor, strings};
use ferroflow_core::{DType, Result, bail, ensure, err};
use std::path::{Path, PathBuf};

/// A column of categories.
#[derive(Clone, Debug)]
pub struct Categorical(CategoricalKind);

#[derive(Clone, Debug)]
enum CategoricalKind {
    Vocabulary { key: String, words: Words, oov_buckets: usize },
    Hashed { key: String, buckets: usize },
    Identity { key: String, buckets: usize, default: Option<i64> },
    Bucketized(Bucketized),
    Crossed { of: Vec<Crossing>, buckets: usize },
}

/// A vocabulary.
#[derive(Clone, Debug)]
pub enum Words {
    /// These texts.
    Listed(Vec<String>),
    /// These integers.
    Numbers(Vec<i64>),
    /// The lines of a file, and their number.
    File(PathBuf, usize),
}

/// An input of a cross: a feature, by name, or another column.
#[derive(Clone, Debug)]
pub enum Crossing {
    /// A feature.
    Key(String),
    /// A categorical column.
    Column(Categorical),
}

impl From<&str> for Crossing {
    fn from(key: &str) -> Crossing {
        Crossing::Key(key.into())
    }
}

impl From<Categorical> for Crossing {
    fn from(column: Categorical) -> Crossing {
        Crossing::Column(column)
    }
}

impl From<Bucketized> for Crossing {
    fn from(column: Bucketized) -> Crossing {
        Crossing::Column(column.into())
    }
}

impl From<Bucketized> for Categorical {
    fn from(column: Bucketized) -> Categorical {
        Categorical(CategoricalKind::Bucketized(column))
    }
}

/// Strings or numbers of a vocabulary list. Other values have no category, unless there are extra
/// buckets.
pub fn vocabulary<T: VocabularyEntry>(key: &str, words: &[T]) -> Categorical {
    Categorical(CategoricalKind::Vocabulary {
        key: key.into(),
        words: T::words(words),
        oov_buckets: 0,
    })
}

/// The first `size` lines of a text file as a vocabulary.
pub fn vocabulary_file(key: &str, file: impl AsRef<Path>, size: usize) -> Categorical {
    let words = Words::File(file.as_ref().to_path_buf(), size);
    Categorical(CategoricalKind::Vocabulary { key: key.into(), words, oov_buckets: 0 })
}

/// Strings or numbers by TensorFlow's hash, so that a string has the same category there.
pub fn hashed(key: &str, buckets: usize) -> Categorical {
    Categorical(CategoricalKind::Hashed { key: key.into(), buckets })
}

/// Numbers from 0 up to `buckets`. Any other number fails the step, unless there is a default.
pub fn identity(key: &str, buckets: usize) -> Categorical {
    Categorical(CategoricalKind::Identity { key: key.into(), buckets, default: None })
}

/// Combinations of the values of several features, by their hash.
pub fn crossed(of: &[Crossing], buckets: usize) -> Categorical {
    Categorical(CategoricalKind::Crossed { of: of.to_vec(), buckets })
}

/// The source of a vocabulary.
pub trait VocabularyEntry: Sized {
    /// The vocabulary of these entries.
    #[doc(hidden)]
    fn words(entries: &[Self]) -> Words;
}

impl VocabularyEntry for &str {
    fn words(entries: &[&str]) -> Words {
        Words::Listed(entries.iter().map(|w| w.to_string()).collect())
    }
}

impl VocabularyEntry for String {
    fn words(entries: &[String]) -> Words {
        Words::Listed(entries.to_vec())
    }
}

impl VocabularyEntry for i64 {
    fn words(entries: &[i64]) -> Words {
        Words::Numbers(entries.to_vec())
    }
}

impl Words {
    fn len(&self) -> usize {
        match self {
            Words::Listed(words) => words.len(),
            Words::Numbers(numbers) => numbers.len(),
            Words::File(_, size) => *size,
        }
    }
}

impl Categorical {
    /// Extra categories for values outside the vocabulary, chosen by hash. Has no effect on other
    /// kinds of columns.
    #[must_use]
    pub fn oov_buckets(mut self, count: usize) -> Categorical {
        if let CategoricalKind::Vocabulary { oov_buckets, .. } = &mut self.0 {
            *oov_buckets = count;
        }
        self
    }

    /// The category of numbers out of range. Has an effect on [`identity`] columns only.
    #[must_use]
    pub fn default_id(mut self, id: i64) -> Categorical {
        if let CategoricalKind::Identity { default, .. } = &mut self.0 {
            *default = Some(id);
        }
        self
    }

    /// Its name, under which its variables are kept.
    pub fn name(&self) -> String {
        match &self.0 {
            CategoricalKind::Vocabulary { key, .. }
            | CategoricalKind::Hashed { key, .. }
            | CategoricalKind::Identity { key, .. } => key.clone(),
            CategoricalKind::Bucketized(column) => column.name(),
            CategoricalKind::Crossed { of, .. } => {
                let mut names = Vec::new();
                leaves(of, &mut |leaf| {
                    names.push(match leaf {
                        Crossing::Key(key) => key.clone(),
                        Crossing::Column(column) => column.name(),
                    });
                });
                names.sort();
                names.join("_X_")
            }
        }
    }

    /// Number of categories.
    pub fn buckets(&self) -> Result<usize> {
        let buckets = match &self.0 {
            CategoricalKind::Vocabulary { words, oov_buckets, .. } => words.len() + oov_buckets,
            CategoricalKind::Hashed { buckets, .. }
            | CategoricalKind::Identity { buckets, .. }
            | CategoricalKind::Crossed { buckets, .. } => *buckets,
            CategoricalKind::Bucketized(column) => column.width(),
        };
        ensure!(buckets > 0, InvalidArgument, "column '{}' has no categories", self.name());
        Ok(buckets)
    }

    /// The features it needs, and whether they are strings.
    pub(crate) fn keys(&self, found: &mut Vec<(String, KeyKind)>) {
        match &self.0 {
            CategoricalKind::Vocabulary { key, words: Words::Numbers(_), .. }
            | CategoricalKind::Identity { key, .. } => {
                found.push((key.clone(), KeyKind::Number));
            }
            CategoricalKind::Vocabulary { key, .. } | CategoricalKind::Hashed { key, .. } => {
                found.push((key.clone(), KeyKind::Text));
            }
            CategoricalKind::Bucketized(column) => {
                let source = column.source();
                found.push((source.key().into(), KeyKind::Numeric(source.clone())));
            }
            CategoricalKind::Crossed { of, .. } => leaves(of, &mut |leaf| match leaf {
                Crossing::Key(key) => found.push((key.clone(), KeyKind::Text)),
                Crossing::Column(column) => column.keys(found),
            }),
        }
    }

    /// The category ids of a batch as int64; values without a category are left out.
    #[track_caller]
    pub fn ids(&self, graph: &Graph, features: &Features) -> Result<SparseOutput> {
        let buckets = self.buckets()?;
        graph.name_scope(&self.name(), |_| match &self.0 {
            CategoricalKind::Vocabulary { key, words, oov_buckets } => {
                look_up(graph, &features.sparse(graph, key)?, words, *oov_buckets)
            }
            CategoricalKind::Hashed { key, .. } => {
                let sparse = features.sparse(graph, key)?;
                Ok(sparse.with_values(hash(graph, &sparse.values, buckets)))
            }
            CategoricalKind::Identity { key, default, .. } => {
                let sparse = features.sparse(graph, key)?;
                let ids = sparse.values.cast(DType::Int64);
                let (low, high) = (ids.less(0), ids.greater_equal(buckets as f32));
                let ids = match default {
                    Some(default) => low.logical_or(&high).select(graph.constant(*default), &ids),
                    None => {
                        let good = low.logical_or(&high).any_all().logical_not();
                        let about = graph.constant(format!(
                            "feature '{key}': a number that is not between 0 and {buckets}"
                        ));
                        let checked = graph.assert(&good, &[about, ids.clone()]);
                        graph.control_dependencies(&[checked], || ids.identity())
                    }
                };
                Ok(sparse.with_values(ids))
            }
            CategoricalKind::Bucketized(column) => column.ids(graph, features),
            CategoricalKind::Crossed { of, .. } => cross(graph, features, of, buckets),
        })
    }
}

/// A column's requirement on a feature.
pub(crate) enum KeyKind {
    Text,
    Number,
    Numeric(super::dense::Numeric),
}

/// Visits the inputs of a cross; nested crosses are flattened.
fn leaves(of: &[Crossing], each: &mut impl FnMut(&Crossing)) {
    for crossing in of {
        match crossing {
            Crossing::Column(Categorical(CategoricalKind::Crossed { of, .. })) => leaves(of, each),
            leaf => each(leaf),
        }
    }
}

/// Hashes strings and numbers.
#[track_caller]
fn hash(graph: &Graph, values: &Output, buckets: usize) -> Output {
    let text = match values.dtype() {
        DType::String => values.clone(),
        _ => graph.op("AsString").input(values).output(),
    };
    let op = graph.op("StringToHashBucketFast").input(&text);
    op.attr("num_buckets", i64::try_from(buckets).unwrap_or(i64::MAX)).output()
}

#[track_caller]
fn look_up(
    graph: &Graph,
    sparse: &SparseOutput,
    words: &Words,
    oov_buckets: usize,
) -> Result<SparseOutput> {
    let key_type = match words {
        Words::Numbers(_) => DType::Int64,
        _ => DType::String,
    };
    let values = match (sparse.values.dtype(), key_type) {
        (DType::String, DType::String) => sparse.values.clone(),
        (t, DType::Int64) if t.is_integer() => sparse.values.cast(DType::Int64),
        (found, wanted) => {
            bail!(InvalidArgument, "'{}' is {found}, its vocabulary {wanted}", sparse.values.name())
        }
    };
    // Private to this graph: another graph may use other words under the same name.
    let name = format!("hash_table_{:016x}", fastrand::u64(..));
    let table = graph
        .op("HashTableV2")
        .attr("key_dtype", key_type)
        .attr("value_dtype", DType::Int64)
        .attr("shared_name", name.as_str())
        .output();
    let numbers = || (0..words.len() as i64).collect::<Vec<i64>>();
    let filled = match words {
        Words::File(file, size) => {
            let file = graph.constant(file.display().to_string());
            graph.add_to_collection(keys::ASSET_FILEPATHS, &file);
            let op = graph.op("InitializeTableFromTextFileV2").input(&table).input(&file);
            // The whole line is the key, its number the value.
            op.attr("key_index", -2i64).attr("value_index", -1i64).attr("vocab_size", *size as i64)
        }
        Words::Listed(list) => {
            let keys = graph.constant_from(strings(list), None);
            let op = graph.op("InitializeTableV2").input(&table).input(&keys);
            op.input(&graph.constant(numbers()))
        }
        Words::Numbers(list) => {
            let keys = graph.constant_from(list.clone().into_tensor(), None);
            let op = graph.op("InitializeTableV2").input(&table).input(&keys);
            op.input(&graph.constant(numbers()))
        }
    };
    graph.add_operation_to_collection(keys::TABLE_INITIALIZERS, &filled.operation());
    let none = graph.constant(-1i64);
    let ids = graph.op("LookupTableFindV2").input(&table).input(&values).input(&none).output();
    let ids = ids.reshape([None]);
    let is_known = ids.not_equal(-1);
    if oov_buckets == 0 {
        return Ok(sparse.with_values(ids).filtered(&is_known));
    }
    let other = hash(graph, &values, oov_buckets) + graph.constant(words.len() as i64);
    Ok(sparse.with_values(is_known.select(&ids, other)))
}

#[track_caller]
fn cross(
    graph: &Graph,
    features: &Features,
    of: &[Crossing],
    buckets: usize,
) -> Result<SparseOutput> {
    /// The initial hash of TensorFlow's crosses.
    const HASH_KEY: i64 = 0x00DE_CAFC_AFFE;
    let mut sparse: Vec<SparseOutput> = Vec::new();
    let mut dense: Vec<Output> = Vec::new();
    let mut result = Ok(());
    leaves(of, &mut |leaf| {
        let mut add = || -> Result<()> {
            match leaf {
                Crossing::Key(key) => match features.get(key)? {
                    Feature::Sparse(s) => sparse.push(s.with_values(crossable(key, &s.values)?)),
                    Feature::Dense(d) => dense.push(crossable(key, &as_matrix(d))?),
                },
                Crossing::Column(column) => sparse.push(column.ids(graph, features)?),
            }
            Ok(())
        };
        if result.is_ok() {
            result = add();
        }
    });
    result?;
    ensure!(
        sparse.len() + dense.len() > 1,
        InvalidArgument,
        "a cross is made of at least two features"
    );
    let all = sparse.iter().map(|s| &s.values).chain(&dense);
    let has_numbers = all.clone().any(|v| v.dtype() != DType::String);
    let pick = |of: fn(&SparseOutput) -> &Output| -> Vec<Output> {
        sparse.iter().map(|s| of(s).clone()).collect()
    };
    let outputs = graph
        .op("SparseCross")
        .list(&pick(|s| &s.indices))
        .list(&pick(|s| &s.values))
        .list(&pick(|s| &s.shape))
        .list(&dense)
        .attr("hashed_output", true)
        .attr("num_buckets", i64::try_from(buckets).unwrap_or(i64::MAX))
        .attr("hash_key", HASH_KEY)
        .attr("out_type", DType::Int64)
        .attr("internal_type", if has_numbers { DType::Int64 } else { DType::String })
        .split::<3>();
    let [indices, values, shape] = outputs;
    indices.set_shape([None, Some(2)]);
    Ok(SparseOutput { indices, values, shape })
}

/// Converts a tensor to a type that crosses take: strings or int64.
#[track_caller]
fn crossable(key: &str, tensor: &Output) -> Result<Output> {
    match tensor.dtype() {
        DType::String => Ok(tensor.clone()),
        t if t.is_integer() => Ok(tensor.cast(DType::Int64)),
        other => Err(err!(InvalidArgument, "feature '{key}' is {other}; bucketize it to cross it")),
    }
}
