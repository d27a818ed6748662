//! Input pipelines: datasets, and the records and examples they are read from.

pub use ferroflow_train::{
    Csv, CsvColumn, Dataset, DatasetFeeder, DatasetIterator, Example, Feeding, RecordWriter,
};
