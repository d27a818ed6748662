//! Sources of elements: files and Rust values.

use super::Dataset;
use crate::graph::Graph;
use crate::output::Output;
use crate::value::{IntoTensor, strings};
use ferroflow_core::{DType, PartialShape, Result, Tensor, ensure, err};

/// A column of a CSV file.
#[derive(Clone, Debug)]
pub struct CsvColumn(Tensor);

impl CsvColumn {
    /// A column that has a value in every record: `float`, `double`, `int32`, `int64` or `string`.
    pub fn required(dtype: DType) -> CsvColumn {
        CsvColumn(Tensor::zeros(dtype, [0]).unwrap_or_else(|_| Tensor::vector::<f32>(&[])))
    }

    /// A column with a default for missing values.
    pub fn or(default: impl IntoTensor) -> Result<CsvColumn> {
        default.into_tensor()?.into_shape([1]).map(CsvColumn)
    }
}

/// Options for reading CSV files.
#[derive(Clone, Debug)]
pub struct Csv {
    columns: Vec<CsvColumn>,
    has_header: bool,
    delimiter: char,
    only: Vec<i64>,
}

impl Csv {
    /// With these columns, separated by commas, without a header.
    pub fn new(columns: &[CsvColumn]) -> Csv {
        Csv { columns: columns.to_vec(), has_header: false, delimiter: ',', only: Vec::new() }
    }

    /// Skips the first line of each file.
    #[must_use]
    pub fn header(mut self) -> Csv {
        self.has_header = true;
        self
    }

    /// The field delimiter.
    #[must_use]
    pub fn delimiter(mut self, delimiter: char) -> Csv {
        self.delimiter = delimiter;
        self
    }

    /// Selects these columns of the file by index; skips the others.
    #[must_use]
    pub fn only(mut self, numbers: &[i64]) -> Csv {
        self.only = numbers.to_vec();
        self
    }
}

impl Graph {
    /// The lines of text files.
    #[track_caller]
    pub fn text_line_dataset(&self, files: &[&str]) -> Dataset {
        self.file_dataset("TextLineDataset", files)
    }

    /// The records of TFRecord files.
    #[track_caller]
    pub fn tf_record_dataset(&self, files: &[&str]) -> Dataset {
        self.file_dataset("TFRecordDataset", files)
    }

    /// The records of the TFRecord files that a tensor names: what [`Dataset::interleave`] over
    /// files needs.
    #[track_caller]
    pub fn tf_record_dataset_of(&self, files: &Output) -> Dataset {
        self.files("TFRecordDataset", files)
    }

    /// The lines of the text files that a tensor names.
    #[track_caller]
    pub fn text_line_dataset_of(&self, files: &Output) -> Dataset {
        self.files("TextLineDataset", files)
    }

    #[track_caller]
    fn file_dataset(&self, op: &str, files: &[&str]) -> Dataset {
        let files = self.constant_from(strings(files), Some("filenames"));
        self.files(op, &files)
    }

    #[track_caller]
    fn files(&self, op: &str, files: &Output) -> Dataset {
        let (compression, buffer) = (self.constant(""), self.constant(0i64));
        let variant = self.op(op).input(files).input(&compression).input(&buffer).output();
        self.scalars(variant, DType::String)
    }

    /// The names of files that match patterns such as `data/*.tfrecord`, sorted.
    #[track_caller]
    pub fn files_dataset(&self, patterns: &[&str]) -> Dataset {
        let patterns = self.constant_from(strings(patterns), Some("patterns"));
        let variant = self.op("MatchingFilesDataset").input(&patterns).output();
        self.scalars(variant, DType::String)
    }

    /// The records of files with fixed-length records, in bytes, after a header. `cast` reads their
    /// contents.
    #[track_caller]
    pub fn fixed_length_dataset(&self, files: &[&str], record: i64, header: i64) -> Dataset {
        let files = self.constant_from(strings(files), Some("filenames"));
        let [header, record, footer, buffer] = [header, record, 0, 0].map(|n| self.constant(n));
        let op = self.op("FixedLengthRecordDatasetV2").input(&files).input(&header).input(&record);
        let compression = self.constant("");
        let variant = op.input(&footer).input(&buffer).input(&compression).output();
        self.scalars(variant, DType::String)
    }

    /// The records of CSV files: one scalar for each column.
    #[track_caller]
    pub fn csv_dataset(&self, files: &[&str], csv: &Csv) -> Dataset {
        let files = self.constant_from(strings(files), Some("filenames"));
        let defaults: Vec<Output> = csv.columns.iter().map(|c| self.constant(&c.0)).collect();
        let types: Vec<DType> = csv.columns.iter().map(|c| c.0.dtype()).collect();
        let shapes = vec![PartialShape::scalar(); types.len()];
        let (compression, buffer) = (self.constant(""), self.constant(0i64));
        let (header, quotes) = (self.constant(csv.has_header), self.constant(true));
        let (delimiter, na) = (self.constant(csv.delimiter.to_string()), self.constant(""));
        let only = self.constant(csv.only.clone());
        let op = self.op("CSVDataset").input(&files).input(&compression).input(&buffer);
        let op = op.input(&header).input(&delimiter).input(&quotes).input(&na).input(&only);
        Dataset::new(self, types, shapes, op.list(&defaults))
    }

    /// A dataset of scalars.
    fn scalars(&self, variant: Output, dtype: DType) -> Dataset {
        let (types, shapes) = (vec![dtype], vec![PartialShape::scalar()]);
        Dataset { graph: self.clone(), variant, types, shapes }
    }

    /// Collects all elements of a Rust iterator now; [`Graph::fed_dataset`] takes them on demand.
    /// Each element has one tensor per component, with equal types and shapes in all elements.
    #[track_caller]
    pub fn dataset_from(&self, elements: impl IntoIterator<Item = Vec<Tensor>>) -> Dataset {
        let columns = stack(elements)
            .map(|columns| columns.into_iter().map(|t| self.constant(t)).collect::<Vec<Output>>());
        let columns = self.or_fail(columns).unwrap_or_default();
        self.dataset(&columns)
    }
}

/// One tensor per component, with a row for each element.
fn stack(elements: impl IntoIterator<Item = Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let rows: Vec<Vec<Tensor>> = elements.into_iter().collect();
    let first = rows.first().ok_or_else(|| err!(InvalidArgument, "a dataset without elements"))?;
    for row in &rows {
        ensure!(
            row.len() == first.len(),
            InvalidArgument,
            "an element of {} tensors instead of {}",
            row.len(),
            first.len()
        );
        for (part, example) in row.iter().zip(first) {
            ensure!(
                part.dtype() == example.dtype() && part.shape() == example.shape(),
                InvalidArgument,
                "an element is {}{} where the first is {}{}",
                part.dtype(),
                part.shape(),
                example.dtype(),
                example.shape()
            );
        }
    }
    (0..first.len()).map(|i| stack_column(&first[i], rows.iter().map(|row| &row[i]))).collect()
}

/// Tensors of the type and shape of the first as rows of one.
fn stack_column<'a>(
    first: &Tensor,
    rows: impl ExactSizeIterator<Item = &'a Tensor>,
) -> Result<Tensor> {
    let mut dims = vec![rows.len()];
    dims.extend_from_slice(first.shape());
    if first.dtype() == DType::String {
        let mut texts = Vec::new();
        for row in rows {
            texts.extend_from_slice(row.strings()?);
        }
        return Tensor::from_strings(dims, texts);
    }
    let mut column = Tensor::alloc(first.dtype(), dims)?;
    let size = first.byte_len().max(1);
    for (row, bytes) in rows.zip(column.bytes_mut()?.chunks_mut(size)) {
        bytes.copy_from_slice(row.bytes()?);
    }
    Ok(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::tests::all;
    use crate::testing::{graph, temporary};
    use crate::{Example, RecordWriter};

    #[test]
    fn texts_and_numbers_of_an_iterator_become_elements() {
        let g = graph();
        let element = |i: usize| vec![Tensor::string(format!("n{i}")), Tensor::scalar(i as i64)];
        let elements = all(&g, &g.dataset_from((0..3).map(element)));
        assert_eq!(elements.len(), 3);
        assert_eq!(elements[2], [Tensor::string("n2"), Tensor::scalar(2i64)]);
        let uneven = |i: usize| vec![Tensor::scalar(0i64); i + 1];
        g.dataset_from((0..3).map(uneven));
        assert!(g.check().unwrap_err().message().contains("2 tensors instead of 1"));
    }

    #[test]
    fn records_of_files_become_elements() {
        let dir = temporary("sources");
        std::fs::create_dir_all(&dir).unwrap();
        let path = |name: &str| dir.join(name).display().to_string();
        std::fs::write(path("b.csv"), "x,n,w\n1.5,7,up\n2.5,,down\n").unwrap();
        std::fs::write(path("fixed.bin"), b"HEADaabbcc").unwrap();
        for name in ["1.tfrecord", "2.tfrecord"] {
            let mut file = RecordWriter::create(path(name)).unwrap();
            file.write(&Example::new().texts("name", &[name]).encode()).unwrap();
            file.finish().unwrap();
        }
        let g = graph();
        let csv = Csv::new(&[CsvColumn::required(DType::Float), CsvColumn::or(-1).unwrap()]);
        let rows = all(&g, &g.csv_dataset(&[&path("b.csv")], &csv.header().only(&[0, 1])));
        assert_eq!(rows[1], [Tensor::scalar(2.5f32), Tensor::scalar(-1i32)]);
        let g = graph();
        let fixed = all(&g, &g.fixed_length_dataset(&[&path("fixed.bin")], 2, 4));
        assert_eq!((fixed.len(), fixed[2][0].clone()), (3, Tensor::string("cc")));
        let g = graph();
        let files = g.files_dataset(&[&path("*.tfrecord")]);
        let records = files.interleave(2, 1, |g, name| g.tf_record_dataset_of(&name[0]));
        assert_eq!(all(&g, &records).len(), 2);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
