"""Ops that TensorFlow declares to have no gradient: what flows back through them is None."""

from ferroflow.python.ops.gradient_registry import not_differentiable

not_differentiable(
    "AsString", "Assert", "AudioSummary", "AudioSummaryV2", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "DecodeBase64", "DecodePaddedRaw", "DecodeProtoV2", "DecodeRaw", "DenseToDenseSetOperation",
    "DenseToSparseSetOperation", "EmptyTensorMap", "EncodeBase64", "EncodeProto", "FixedLengthRecordReader",
    "HashTable", "HashTableV2", "HistogramSummary", "IdentityReader", "ImageSummary", "InitializeTable",
    "InitializeTableFromTextFile", "InitializeTableFromTextFileV2", "InitializeTableV2", "Invert", "LMDBReader",
    "LeftShift", "LookupTableFind", "LookupTableFindV2", "LookupTableInsert", "LookupTableInsertV2",
    "LookupTableSize", "LookupTableSizeV2", "MergeSummary", "Multinomial", "MutableDenseHashTable",
    "MutableDenseHashTableV2", "MutableHashTable", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2",
    "MutableHashTableV2", "ParameterizedTruncatedNormal", "ParseTensor", "PopulationCount", "PyFunc",
    "PyFuncStateless", "RandomIndexShuffle", "RandomShuffle", "RandomStandardNormal", "RandomUniform",
    "ReaderNumRecordsProduced", "ReaderNumWorkUnitsCompleted", "ReaderRead", "ReaderReadUpTo", "ReaderReset",
    "ReaderRestoreState", "ReaderSerializeState", "ReduceDataset", "ReduceJoin", "RegexReplace", "RightShift",
    "ScalarSummary", "ScatterNdDiv", "ScatterNdMul", "SdcaFprint", "SdcaOptimizer", "SdcaOptimizerV2",
    "SdcaShrinkL1", "SerializeTensor", "SetSize", "SparseMatrixNNZ", "SparseMatrixZeros",
    "SparseToSparseSetOperation", "StatelessMultinomial", "StatelessRandomBinomial", "StatelessRandomNormal",
    "StatelessRandomNormalV2", "StatelessRandomPoisson", "StatelessRandomShuffle", "StatelessRandomUniform",
    "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2", "StatelessRandomUniformInt",
    "StatelessRandomUniformIntV2", "StatelessRandomUniformV2", "StatelessTruncatedNormal",
    "StatelessTruncatedNormalV2", "StringJoin", "StringSplit", "StringToHashBucket", "StringToHashBucketFast",
    "StringToHashBucketStrong", "StringToNumber", "TFRecordReader", "TensorArray", "TensorArrayClose",
    "TensorArrayCloseV2", "TensorArrayGrad", "TensorArrayGradV2", "TensorArraySize", "TensorArraySizeV2",
    "TensorArrayV2", "TensorListConcatLists", "TensorListPushBackBatch", "TensorSummary", "TensorSummaryV2",
    "TextLineReader", "TruncatedNormal", "WholeFileReader")
