//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Operation;
use crate::output::Output;
use ferroflow_core::DType;

/// The attributes of [`all_candidate_sampler_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AllCandidateSamplerOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for AllCandidateSamplerOptions {
    fn default() -> Self {
        AllCandidateSamplerOptions { seed: 0, seed2: 0 }
    }
}

/// `AllCandidateSampler`: Candidate classes drawn all of them, and how often each was to be
/// expected.
///
/// Returns (`sampled_candidates`, `true_expected_count`, `sampled_expected_count`).
#[inline]
#[track_caller]
pub fn all_candidate_sampler(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
) -> (Output, Output, Output) {
    all_candidate_sampler_with(
        true_classes,
        num_true,
        num_sampled,
        unique,
        AllCandidateSamplerOptions::default(),
    )
}

/// [`all_candidate_sampler()`] with other attributes.
#[inline]
#[track_caller]
pub fn all_candidate_sampler_with(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    options: AllCandidateSamplerOptions,
) -> (Output, Output, Output) {
    let [sampled_candidates, true_expected_count, sampled_expected_count] = true_classes
        .graph()
        .op("AllCandidateSampler")
        .input(true_classes)
        .attr("num_true", num_true)
        .attr("num_sampled", num_sampled)
        .attr("unique", unique)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .split();
    (sampled_candidates, true_expected_count, sampled_expected_count)
}

/// The attributes of [`compute_accidental_hits_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ComputeAccidentalHitsOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for ComputeAccidentalHitsOptions {
    fn default() -> Self {
        ComputeAccidentalHitsOptions { seed: 0, seed2: 0 }
    }
}

/// `ComputeAccidentalHits`: Where true classes were sampled too, with weights that make them
/// impossible.
///
/// Returns (`indices`, `ids`, `weights`).
#[inline]
#[track_caller]
pub fn compute_accidental_hits(
    true_classes: &Output,
    sampled_candidates: &Output,
    num_true: i64,
) -> (Output, Output, Output) {
    compute_accidental_hits_with(
        true_classes,
        sampled_candidates,
        num_true,
        ComputeAccidentalHitsOptions::default(),
    )
}

/// [`compute_accidental_hits()`] with other attributes.
#[inline]
#[track_caller]
pub fn compute_accidental_hits_with(
    true_classes: &Output,
    sampled_candidates: &Output,
    num_true: i64,
    options: ComputeAccidentalHitsOptions,
) -> (Output, Output, Output) {
    let [indices, ids, weights] = true_classes
        .graph()
        .op("ComputeAccidentalHits")
        .input(true_classes)
        .input(sampled_candidates)
        .attr("num_true", num_true)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .split();
    (indices, ids, weights)
}

/// The attributes of [`fixed_unigram_candidate_sampler_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FixedUnigramCandidateSamplerOptions<'a> {
    /// `vocab_file`: string, empty by default.
    pub vocab_file: &'a str,
    /// `distortion`: float, `1.0` by default.
    pub distortion: f32,
    /// `num_reserved_ids`: int, `0` by default.
    pub num_reserved_ids: i64,
    /// `num_shards`: int, `1` by default.
    pub num_shards: i64,
    /// `shard`: int, `0` by default.
    pub shard: i64,
    /// `unigrams`: list of floats, empty by default.
    pub unigrams: &'a [f32],
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for FixedUnigramCandidateSamplerOptions<'_> {
    fn default() -> Self {
        FixedUnigramCandidateSamplerOptions {
            vocab_file: "",
            distortion: 1.0,
            num_reserved_ids: 0,
            num_shards: 1,
            shard: 0,
            unigrams: &[],
            seed: 0,
            seed2: 0,
        }
    }
}

/// `FixedUnigramCandidateSampler`: Candidate classes drawn by given weights, and how often each was
/// to be expected.
///
/// Returns (`sampled_candidates`, `true_expected_count`, `sampled_expected_count`).
#[inline]
#[track_caller]
pub fn fixed_unigram_candidate_sampler(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
) -> (Output, Output, Output) {
    fixed_unigram_candidate_sampler_with(
        true_classes,
        num_true,
        num_sampled,
        unique,
        range_max,
        FixedUnigramCandidateSamplerOptions::default(),
    )
}

/// [`fixed_unigram_candidate_sampler()`] with other attributes.
#[inline]
#[track_caller]
pub fn fixed_unigram_candidate_sampler_with(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
    options: FixedUnigramCandidateSamplerOptions<'_>,
) -> (Output, Output, Output) {
    let [sampled_candidates, true_expected_count, sampled_expected_count] = true_classes
        .graph()
        .op("FixedUnigramCandidateSampler")
        .input(true_classes)
        .attr("num_true", num_true)
        .attr("num_sampled", num_sampled)
        .attr("unique", unique)
        .attr("range_max", range_max)
        .attr("vocab_file", options.vocab_file)
        .attr("distortion", options.distortion)
        .attr("num_reserved_ids", options.num_reserved_ids)
        .attr("num_shards", options.num_shards)
        .attr("shard", options.shard)
        .attr("unigrams", list(options.unigrams))
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .split();
    (sampled_candidates, true_expected_count, sampled_expected_count)
}

/// `KMC2ChainInitialization`: An index, picked by a Markov chain that prefers large distances.
#[inline]
#[track_caller]
pub fn kmc2_chain_initialization(distances: &Output, seed: &Output) -> Output {
    distances.graph().op("KMC2ChainInitialization").input(distances).input(seed).output()
}

/// `KmeansPlusPlusInitialization`: Rows that are far from each other, picked by the k-means++ rule.
#[inline]
#[track_caller]
pub fn kmeans_plus_plus_initialization(
    points: &Output,
    num_to_sample: &Output,
    seed: &Output,
    num_retries_per_sample: &Output,
) -> Output {
    points
        .graph()
        .op("KmeansPlusPlusInitialization")
        .input(points)
        .input(num_to_sample)
        .input(seed)
        .input(num_retries_per_sample)
        .output()
}

/// The attributes of [`learned_unigram_candidate_sampler_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LearnedUnigramCandidateSamplerOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for LearnedUnigramCandidateSamplerOptions {
    fn default() -> Self {
        LearnedUnigramCandidateSamplerOptions { seed: 0, seed2: 0 }
    }
}

/// `LearnedUnigramCandidateSampler`: Candidate classes drawn as often as they came in earlier
/// steps, and how often each was to be expected.
///
/// Returns (`sampled_candidates`, `true_expected_count`, `sampled_expected_count`).
#[inline]
#[track_caller]
pub fn learned_unigram_candidate_sampler(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
) -> (Output, Output, Output) {
    learned_unigram_candidate_sampler_with(
        true_classes,
        num_true,
        num_sampled,
        unique,
        range_max,
        LearnedUnigramCandidateSamplerOptions::default(),
    )
}

/// [`learned_unigram_candidate_sampler()`] with other attributes.
#[inline]
#[track_caller]
pub fn learned_unigram_candidate_sampler_with(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
    options: LearnedUnigramCandidateSamplerOptions,
) -> (Output, Output, Output) {
    let [sampled_candidates, true_expected_count, sampled_expected_count] = true_classes
        .graph()
        .op("LearnedUnigramCandidateSampler")
        .input(true_classes)
        .attr("num_true", num_true)
        .attr("num_sampled", num_sampled)
        .attr("unique", unique)
        .attr("range_max", range_max)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .split();
    (sampled_candidates, true_expected_count, sampled_expected_count)
}

/// The attributes of [`log_uniform_candidate_sampler_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct LogUniformCandidateSamplerOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for LogUniformCandidateSamplerOptions {
    fn default() -> Self {
        LogUniformCandidateSamplerOptions { seed: 0, seed2: 0 }
    }
}

/// `LogUniformCandidateSampler`: Candidate classes drawn log-uniformly, small ones more often, and
/// how often each was to be expected.
///
/// Returns (`sampled_candidates`, `true_expected_count`, `sampled_expected_count`).
#[inline]
#[track_caller]
pub fn log_uniform_candidate_sampler(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
) -> (Output, Output, Output) {
    log_uniform_candidate_sampler_with(
        true_classes,
        num_true,
        num_sampled,
        unique,
        range_max,
        LogUniformCandidateSamplerOptions::default(),
    )
}

/// [`log_uniform_candidate_sampler()`] with other attributes.
#[inline]
#[track_caller]
pub fn log_uniform_candidate_sampler_with(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
    options: LogUniformCandidateSamplerOptions,
) -> (Output, Output, Output) {
    let [sampled_candidates, true_expected_count, sampled_expected_count] = true_classes
        .graph()
        .op("LogUniformCandidateSampler")
        .input(true_classes)
        .attr("num_true", num_true)
        .attr("num_sampled", num_sampled)
        .attr("unique", unique)
        .attr("range_max", range_max)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .split();
    (sampled_candidates, true_expected_count, sampled_expected_count)
}

/// The attributes of [`multinomial_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MultinomialOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
    /// `output_dtype`: type, `Int64` by default.
    pub output_dtype: DType,
}

impl Default for MultinomialOptions {
    fn default() -> Self {
        MultinomialOptions { seed: 0, seed2: 0, output_dtype: DType::Int64 }
    }
}

/// `Multinomial`: Classes drawn by unnormalised log probabilities, `num_samples` for each row.
#[inline]
#[track_caller]
pub fn multinomial(logits: &Output, num_samples: &Output) -> Output {
    multinomial_with(logits, num_samples, MultinomialOptions::default())
}

/// [`multinomial()`] with other attributes.
#[inline]
#[track_caller]
pub fn multinomial_with(
    logits: &Output,
    num_samples: &Output,
    options: MultinomialOptions,
) -> Output {
    logits
        .graph()
        .op("Multinomial")
        .input(logits)
        .input(num_samples)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .attr("output_dtype", options.output_dtype)
        .output()
}

/// `NearestNeighbors`: The nearest centers of each point, and the squares of their distances.
///
/// Returns (`nearest_center_indices`, `nearest_center_distances`).
#[inline]
#[track_caller]
pub fn nearest_neighbors(points: &Output, centers: &Output, k: &Output) -> (Output, Output) {
    let [nearest_center_indices, nearest_center_distances] =
        points.graph().op("NearestNeighbors").input(points).input(centers).input(k).split();
    (nearest_center_indices, nearest_center_distances)
}

/// The attributes of [`non_deterministic_ints_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct NonDeterministicIntsOptions {
    /// `dtype`: type, `Int64` by default.
    pub dtype: DType,
}

impl Default for NonDeterministicIntsOptions {
    fn default() -> Self {
        NonDeterministicIntsOptions { dtype: DType::Int64 }
    }
}

/// `NonDeterministicInts`: Integers that no seed determines.
#[inline]
#[track_caller]
pub fn non_deterministic_ints(shape: &Output) -> Output {
    non_deterministic_ints_with(shape, NonDeterministicIntsOptions::default())
}

/// [`non_deterministic_ints()`] with other attributes.
#[inline]
#[track_caller]
pub fn non_deterministic_ints_with(shape: &Output, options: NonDeterministicIntsOptions) -> Output {
    shape.graph().op("NonDeterministicInts").input(shape).attr("dtype", options.dtype).output()
}

/// The attributes of [`parameterized_truncated_normal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ParameterizedTruncatedNormalOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for ParameterizedTruncatedNormalOptions {
    fn default() -> Self {
        ParameterizedTruncatedNormalOptions { seed: 0, seed2: 0 }
    }
}

/// `ParameterizedTruncatedNormal`: Normal values between bounds, with parameters for each row or
/// for all.
#[inline]
#[track_caller]
pub fn parameterized_truncated_normal(
    shape: &Output,
    means: &Output,
    stdevs: &Output,
    minvals: &Output,
    maxvals: &Output,
) -> Output {
    parameterized_truncated_normal_with(
        shape,
        means,
        stdevs,
        minvals,
        maxvals,
        ParameterizedTruncatedNormalOptions::default(),
    )
}

/// [`parameterized_truncated_normal()`] with other attributes.
#[inline]
#[track_caller]
pub fn parameterized_truncated_normal_with(
    shape: &Output,
    means: &Output,
    stdevs: &Output,
    minvals: &Output,
    maxvals: &Output,
    options: ParameterizedTruncatedNormalOptions,
) -> Output {
    shape
        .graph()
        .op("ParameterizedTruncatedNormal")
        .input(shape)
        .input(means)
        .input(stdevs)
        .input(minvals)
        .input(maxvals)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .output()
}

/// The attributes of [`random_crop_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomCropOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for RandomCropOptions {
    fn default() -> Self {
        RandomCropOptions { seed: 0, seed2: 0 }
    }
}

/// `RandomCrop`: A part of an image, of the size asked for, from a random place.
#[inline]
#[track_caller]
pub fn random_crop(image: &Output, size: &Output) -> Output {
    random_crop_with(image, size, RandomCropOptions::default())
}

/// [`random_crop()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_crop_with(image: &Output, size: &Output, options: RandomCropOptions) -> Output {
    image
        .graph()
        .op("RandomCrop")
        .input(image)
        .input(size)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .output()
}

/// The attributes of [`random_gamma_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomGammaOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for RandomGammaOptions {
    fn default() -> Self {
        RandomGammaOptions { seed: 0, seed2: 0 }
    }
}

/// `RandomGamma`: Values of gamma distributions with shape parameters `alpha` and rate 1.
#[inline]
#[track_caller]
pub fn random_gamma(shape: &Output, alpha: &Output) -> Output {
    random_gamma_with(shape, alpha, RandomGammaOptions::default())
}

/// [`random_gamma()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_gamma_with(shape: &Output, alpha: &Output, options: RandomGammaOptions) -> Output {
    shape
        .graph()
        .op("RandomGamma")
        .input(shape)
        .input(alpha)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .output()
}

/// The attributes of [`random_index_shuffle_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomIndexShuffleOptions {
    /// `rounds`: int, `4` by default.
    pub rounds: i64,
}

impl Default for RandomIndexShuffleOptions {
    fn default() -> Self {
        RandomIndexShuffleOptions { rounds: 4 }
    }
}

/// `RandomIndexShuffle`: Where `index` goes in a pseudorandom permutation of 0..=max_index.
#[inline]
#[track_caller]
pub fn random_index_shuffle(index: &Output, seed: &Output, max_index: &Output) -> Output {
    random_index_shuffle_with(index, seed, max_index, RandomIndexShuffleOptions::default())
}

/// [`random_index_shuffle()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_index_shuffle_with(
    index: &Output,
    seed: &Output,
    max_index: &Output,
    options: RandomIndexShuffleOptions,
) -> Output {
    index
        .graph()
        .op("RandomIndexShuffle")
        .input(index)
        .input(seed)
        .input(max_index)
        .attr("rounds", options.rounds)
        .output()
}

/// The attributes of [`random_poisson_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomPoissonOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for RandomPoissonOptions {
    fn default() -> Self {
        RandomPoissonOptions { seed: 0, seed2: 0 }
    }
}

/// `RandomPoisson`: Values of Poisson distributions with these rates.
#[inline]
#[track_caller]
pub fn random_poisson(shape: &Output, rate: &Output) -> Output {
    random_poisson_with(shape, rate, RandomPoissonOptions::default())
}

/// [`random_poisson()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_poisson_with(shape: &Output, rate: &Output, options: RandomPoissonOptions) -> Output {
    shape
        .graph()
        .op("RandomPoisson")
        .input(shape)
        .input(rate)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .output()
}

/// The attributes of [`random_poisson_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomPoissonV2Options {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
    /// `dtype`: type, `Int64` by default.
    pub dtype: DType,
}

impl Default for RandomPoissonV2Options {
    fn default() -> Self {
        RandomPoissonV2Options { seed: 0, seed2: 0, dtype: DType::Int64 }
    }
}

/// `RandomPoissonV2`: Values of Poisson distributions with these rates, of any dtype.
#[inline]
#[track_caller]
pub fn random_poisson_v2(shape: &Output, rate: &Output) -> Output {
    random_poisson_v2_with(shape, rate, RandomPoissonV2Options::default())
}

/// [`random_poisson_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_poisson_v2_with(
    shape: &Output,
    rate: &Output,
    options: RandomPoissonV2Options,
) -> Output {
    shape
        .graph()
        .op("RandomPoissonV2")
        .input(shape)
        .input(rate)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`random_shuffle_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomShuffleOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for RandomShuffleOptions {
    fn default() -> Self {
        RandomShuffleOptions { seed: 0, seed2: 0 }
    }
}

/// `RandomShuffle`: Rows in random order.
#[inline]
#[track_caller]
pub fn random_shuffle(value: &Output) -> Output {
    random_shuffle_with(value, RandomShuffleOptions::default())
}

/// [`random_shuffle()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_shuffle_with(value: &Output, options: RandomShuffleOptions) -> Output {
    value
        .graph()
        .op("RandomShuffle")
        .input(value)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .output()
}

/// The attributes of [`random_standard_normal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomStandardNormalOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for RandomStandardNormalOptions {
    fn default() -> Self {
        RandomStandardNormalOptions { seed: 0, seed2: 0 }
    }
}

/// `RandomStandardNormal`: Values of the standard normal distribution.
#[inline]
#[track_caller]
pub fn random_standard_normal(shape: &Output, dtype: DType) -> Output {
    random_standard_normal_with(shape, dtype, RandomStandardNormalOptions::default())
}

/// [`random_standard_normal()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_standard_normal_with(
    shape: &Output,
    dtype: DType,
    options: RandomStandardNormalOptions,
) -> Output {
    shape
        .graph()
        .op("RandomStandardNormal")
        .input(shape)
        .attr("dtype", dtype)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .output()
}

/// The attributes of [`random_uniform_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomUniformOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for RandomUniformOptions {
    fn default() -> Self {
        RandomUniformOptions { seed: 0, seed2: 0 }
    }
}

/// `RandomUniform`: Values uniform in \[0, 1).
#[inline]
#[track_caller]
pub fn random_uniform(shape: &Output, dtype: DType) -> Output {
    random_uniform_with(shape, dtype, RandomUniformOptions::default())
}

/// [`random_uniform()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_uniform_with(shape: &Output, dtype: DType, options: RandomUniformOptions) -> Output {
    shape
        .graph()
        .op("RandomUniform")
        .input(shape)
        .attr("dtype", dtype)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .output()
}

/// The attributes of [`random_uniform_int_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomUniformIntOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for RandomUniformIntOptions {
    fn default() -> Self {
        RandomUniformIntOptions { seed: 0, seed2: 0 }
    }
}

/// `RandomUniformInt`: Integers uniform in \[minval, maxval).
#[inline]
#[track_caller]
pub fn random_uniform_int(shape: &Output, minval: &Output, maxval: &Output) -> Output {
    random_uniform_int_with(shape, minval, maxval, RandomUniformIntOptions::default())
}

/// [`random_uniform_int()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_uniform_int_with(
    shape: &Output,
    minval: &Output,
    maxval: &Output,
    options: RandomUniformIntOptions,
) -> Output {
    shape
        .graph()
        .op("RandomUniformInt")
        .input(shape)
        .input(minval)
        .input(maxval)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .output()
}

/// `RngReadAndSkip`: The stream kept in a variable, which then moves on by `delta` values.
#[inline]
#[track_caller]
pub fn rng_read_and_skip(resource: &Output, alg: &Output, delta: &Output) -> Output {
    resource.graph().op("RngReadAndSkip").input(resource).input(alg).input(delta).output()
}

/// `RngSkip`: Moves the stream kept in a variable on by `delta` values.
#[inline]
#[track_caller]
pub fn rng_skip(resource: &Output, algorithm: &Output, delta: &Output) -> Operation {
    resource.graph().op("RngSkip").input(resource).input(algorithm).input(delta).operation()
}

/// The attributes of [`sobol_sample_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SobolSampleOptions {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for SobolSampleOptions {
    fn default() -> Self {
        SobolSampleOptions { dtype: DType::Float }
    }
}

/// `SobolSample`: Points of Sobol's sequence, which fill a cube evenly.
#[inline]
#[track_caller]
pub fn sobol_sample(dim: &Output, num_results: &Output, skip: &Output) -> Output {
    sobol_sample_with(dim, num_results, skip, SobolSampleOptions::default())
}

/// [`sobol_sample()`] with other attributes.
#[inline]
#[track_caller]
pub fn sobol_sample_with(
    dim: &Output,
    num_results: &Output,
    skip: &Output,
    options: SobolSampleOptions,
) -> Output {
    dim.graph()
        .op("SobolSample")
        .input(dim)
        .input(num_results)
        .input(skip)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateful_random_binomial_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatefulRandomBinomialOptions {
    /// `dtype`: type, `Int64` by default.
    pub dtype: DType,
}

impl Default for StatefulRandomBinomialOptions {
    fn default() -> Self {
        StatefulRandomBinomialOptions { dtype: DType::Int64 }
    }
}

/// `StatefulRandomBinomial`: Values of binomial distributions, from a stream kept in a variable.
#[inline]
#[track_caller]
pub fn stateful_random_binomial(
    resource: &Output,
    algorithm: &Output,
    shape: &Output,
    counts: &Output,
    probs: &Output,
) -> Output {
    stateful_random_binomial_with(
        resource,
        algorithm,
        shape,
        counts,
        probs,
        StatefulRandomBinomialOptions::default(),
    )
}

/// [`stateful_random_binomial()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateful_random_binomial_with(
    resource: &Output,
    algorithm: &Output,
    shape: &Output,
    counts: &Output,
    probs: &Output,
    options: StatefulRandomBinomialOptions,
) -> Output {
    resource
        .graph()
        .op("StatefulRandomBinomial")
        .input(resource)
        .input(algorithm)
        .input(shape)
        .input(counts)
        .input(probs)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateful_standard_normal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatefulStandardNormalOptions {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatefulStandardNormalOptions {
    fn default() -> Self {
        StatefulStandardNormalOptions { dtype: DType::Float }
    }
}

/// `StatefulStandardNormal`: Standard normal values, from a stream kept in a variable with its
/// algorithm.
#[inline]
#[track_caller]
pub fn stateful_standard_normal(resource: &Output, shape: &Output) -> Output {
    stateful_standard_normal_with(resource, shape, StatefulStandardNormalOptions::default())
}

/// [`stateful_standard_normal()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateful_standard_normal_with(
    resource: &Output,
    shape: &Output,
    options: StatefulStandardNormalOptions,
) -> Output {
    resource
        .graph()
        .op("StatefulStandardNormal")
        .input(resource)
        .input(shape)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateful_standard_normal_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatefulStandardNormalV2Options {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatefulStandardNormalV2Options {
    fn default() -> Self {
        StatefulStandardNormalV2Options { dtype: DType::Float }
    }
}

/// `StatefulStandardNormalV2`: Standard normal values, from a stream kept in a variable.
#[inline]
#[track_caller]
pub fn stateful_standard_normal_v2(
    resource: &Output,
    algorithm: &Output,
    shape: &Output,
) -> Output {
    stateful_standard_normal_v2_with(
        resource,
        algorithm,
        shape,
        StatefulStandardNormalV2Options::default(),
    )
}

/// [`stateful_standard_normal_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateful_standard_normal_v2_with(
    resource: &Output,
    algorithm: &Output,
    shape: &Output,
    options: StatefulStandardNormalV2Options,
) -> Output {
    resource
        .graph()
        .op("StatefulStandardNormalV2")
        .input(resource)
        .input(algorithm)
        .input(shape)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateful_truncated_normal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatefulTruncatedNormalOptions {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatefulTruncatedNormalOptions {
    fn default() -> Self {
        StatefulTruncatedNormalOptions { dtype: DType::Float }
    }
}

/// `StatefulTruncatedNormal`: Truncated normal values, from a stream kept in a variable.
#[inline]
#[track_caller]
pub fn stateful_truncated_normal(resource: &Output, algorithm: &Output, shape: &Output) -> Output {
    stateful_truncated_normal_with(
        resource,
        algorithm,
        shape,
        StatefulTruncatedNormalOptions::default(),
    )
}

/// [`stateful_truncated_normal()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateful_truncated_normal_with(
    resource: &Output,
    algorithm: &Output,
    shape: &Output,
    options: StatefulTruncatedNormalOptions,
) -> Output {
    resource
        .graph()
        .op("StatefulTruncatedNormal")
        .input(resource)
        .input(algorithm)
        .input(shape)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateful_uniform_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatefulUniformOptions {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatefulUniformOptions {
    fn default() -> Self {
        StatefulUniformOptions { dtype: DType::Float }
    }
}

/// `StatefulUniform`: Values uniform in \[0, 1), from a stream kept in a variable.
#[inline]
#[track_caller]
pub fn stateful_uniform(resource: &Output, algorithm: &Output, shape: &Output) -> Output {
    stateful_uniform_with(resource, algorithm, shape, StatefulUniformOptions::default())
}

/// [`stateful_uniform()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateful_uniform_with(
    resource: &Output,
    algorithm: &Output,
    shape: &Output,
    options: StatefulUniformOptions,
) -> Output {
    resource
        .graph()
        .op("StatefulUniform")
        .input(resource)
        .input(algorithm)
        .input(shape)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateful_uniform_full_int_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatefulUniformFullIntOptions {
    /// `dtype`: type, `UInt64` by default.
    pub dtype: DType,
}

impl Default for StatefulUniformFullIntOptions {
    fn default() -> Self {
        StatefulUniformFullIntOptions { dtype: DType::UInt64 }
    }
}

/// `StatefulUniformFullInt`: Any integers of the type, from a stream kept in a variable.
#[inline]
#[track_caller]
pub fn stateful_uniform_full_int(resource: &Output, algorithm: &Output, shape: &Output) -> Output {
    stateful_uniform_full_int_with(
        resource,
        algorithm,
        shape,
        StatefulUniformFullIntOptions::default(),
    )
}

/// [`stateful_uniform_full_int()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateful_uniform_full_int_with(
    resource: &Output,
    algorithm: &Output,
    shape: &Output,
    options: StatefulUniformFullIntOptions,
) -> Output {
    resource
        .graph()
        .op("StatefulUniformFullInt")
        .input(resource)
        .input(algorithm)
        .input(shape)
        .attr("dtype", options.dtype)
        .output()
}

/// `StatefulUniformInt`: Integers uniform in \[minval, maxval), from a stream kept in a variable.
#[inline]
#[track_caller]
pub fn stateful_uniform_int(
    resource: &Output,
    algorithm: &Output,
    shape: &Output,
    minval: &Output,
    maxval: &Output,
) -> Output {
    resource
        .graph()
        .op("StatefulUniformInt")
        .input(resource)
        .input(algorithm)
        .input(shape)
        .input(minval)
        .input(maxval)
        .output()
}

/// The attributes of [`stateless_multinomial_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessMultinomialOptions {
    /// `output_dtype`: type, `Int64` by default.
    pub output_dtype: DType,
}

impl Default for StatelessMultinomialOptions {
    fn default() -> Self {
        StatelessMultinomialOptions { output_dtype: DType::Int64 }
    }
}

/// `StatelessMultinomial`: Classes drawn by unnormalised log probabilities, from a seed.
#[inline]
#[track_caller]
pub fn stateless_multinomial(logits: &Output, num_samples: &Output, seed: &Output) -> Output {
    stateless_multinomial_with(logits, num_samples, seed, StatelessMultinomialOptions::default())
}

/// [`stateless_multinomial()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_multinomial_with(
    logits: &Output,
    num_samples: &Output,
    seed: &Output,
    options: StatelessMultinomialOptions,
) -> Output {
    logits
        .graph()
        .op("StatelessMultinomial")
        .input(logits)
        .input(num_samples)
        .input(seed)
        .attr("output_dtype", options.output_dtype)
        .output()
}

/// `StatelessParameterizedTruncatedNormal`: Normal values between bounds, from a seed.
#[inline]
#[track_caller]
pub fn stateless_parameterized_truncated_normal(
    shape: &Output,
    seed: &Output,
    means: &Output,
    stddevs: &Output,
    minvals: &Output,
    maxvals: &Output,
) -> Output {
    shape
        .graph()
        .op("StatelessParameterizedTruncatedNormal")
        .input(shape)
        .input(seed)
        .input(means)
        .input(stddevs)
        .input(minvals)
        .input(maxvals)
        .output()
}

/// The attributes of [`stateless_random_binomial_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessRandomBinomialOptions {
    /// `dtype`: type, `Int64` by default.
    pub dtype: DType,
}

impl Default for StatelessRandomBinomialOptions {
    fn default() -> Self {
        StatelessRandomBinomialOptions { dtype: DType::Int64 }
    }
}

/// `StatelessRandomBinomial`: Values of binomial distributions, from a seed.
#[inline]
#[track_caller]
pub fn stateless_random_binomial(
    shape: &Output,
    seed: &Output,
    counts: &Output,
    probs: &Output,
) -> Output {
    stateless_random_binomial_with(
        shape,
        seed,
        counts,
        probs,
        StatelessRandomBinomialOptions::default(),
    )
}

/// [`stateless_random_binomial()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_random_binomial_with(
    shape: &Output,
    seed: &Output,
    counts: &Output,
    probs: &Output,
    options: StatelessRandomBinomialOptions,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomBinomial")
        .input(shape)
        .input(seed)
        .input(counts)
        .input(probs)
        .attr("dtype", options.dtype)
        .output()
}

/// `StatelessRandomGammaV2`: Values of gamma distributions, from a seed.
#[inline]
#[track_caller]
pub fn stateless_random_gamma_v2(shape: &Output, seed: &Output, alpha: &Output) -> Output {
    shape.graph().op("StatelessRandomGammaV2").input(shape).input(seed).input(alpha).output()
}

/// `StatelessRandomGammaV3`: Values of gamma distributions, from a key and counter.
#[inline]
#[track_caller]
pub fn stateless_random_gamma_v3(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
    alpha: &Output,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomGammaV3")
        .input(shape)
        .input(key)
        .input(counter)
        .input(alg)
        .input(alpha)
        .output()
}

/// `StatelessRandomGetAlg`: The random number algorithm of this device: Philox.
#[inline]
#[track_caller]
pub fn stateless_random_get_alg(g: &Graph) -> Output {
    g.op("StatelessRandomGetAlg").output()
}

/// `StatelessRandomGetKeyCounter`: The key and counter that a seed stands for.
///
/// Returns (`key`, `counter`).
#[inline]
#[track_caller]
pub fn stateless_random_get_key_counter(seed: &Output) -> (Output, Output) {
    let [key, counter] = seed.graph().op("StatelessRandomGetKeyCounter").input(seed).split();
    (key, counter)
}

/// `StatelessRandomGetKeyCounterAlg`: The key and counter that a seed stands for, and the algorithm
/// for them.
///
/// Returns (`key`, `counter`, `alg`).
#[inline]
#[track_caller]
pub fn stateless_random_get_key_counter_alg(seed: &Output) -> (Output, Output, Output) {
    let [key, counter, alg] =
        seed.graph().op("StatelessRandomGetKeyCounterAlg").input(seed).split();
    (key, counter, alg)
}

/// The attributes of [`stateless_random_normal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessRandomNormalOptions {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatelessRandomNormalOptions {
    fn default() -> Self {
        StatelessRandomNormalOptions { dtype: DType::Float }
    }
}

/// `StatelessRandomNormal`: Standard normal values, from a seed.
#[inline]
#[track_caller]
pub fn stateless_random_normal(shape: &Output, seed: &Output) -> Output {
    stateless_random_normal_with(shape, seed, StatelessRandomNormalOptions::default())
}

/// [`stateless_random_normal()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_random_normal_with(
    shape: &Output,
    seed: &Output,
    options: StatelessRandomNormalOptions,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomNormal")
        .input(shape)
        .input(seed)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateless_random_normal_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessRandomNormalV2Options {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatelessRandomNormalV2Options {
    fn default() -> Self {
        StatelessRandomNormalV2Options { dtype: DType::Float }
    }
}

/// `StatelessRandomNormalV2`: Standard normal values, from a key and counter.
#[inline]
#[track_caller]
pub fn stateless_random_normal_v2(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
) -> Output {
    stateless_random_normal_v2_with(
        shape,
        key,
        counter,
        alg,
        StatelessRandomNormalV2Options::default(),
    )
}

/// [`stateless_random_normal_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_random_normal_v2_with(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
    options: StatelessRandomNormalV2Options,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomNormalV2")
        .input(shape)
        .input(key)
        .input(counter)
        .input(alg)
        .attr("dtype", options.dtype)
        .output()
}

/// `StatelessRandomPoisson`: Values of Poisson distributions, from a seed.
#[inline]
#[track_caller]
pub fn stateless_random_poisson(
    shape: &Output,
    seed: &Output,
    lam: &Output,
    dtype: DType,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomPoisson")
        .input(shape)
        .input(seed)
        .input(lam)
        .attr("dtype", dtype)
        .output()
}

/// The attributes of [`stateless_random_uniform_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessRandomUniformOptions {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatelessRandomUniformOptions {
    fn default() -> Self {
        StatelessRandomUniformOptions { dtype: DType::Float }
    }
}

/// `StatelessRandomUniform`: Values uniform in \[0, 1), from a seed.
#[inline]
#[track_caller]
pub fn stateless_random_uniform(shape: &Output, seed: &Output) -> Output {
    stateless_random_uniform_with(shape, seed, StatelessRandomUniformOptions::default())
}

/// [`stateless_random_uniform()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_random_uniform_with(
    shape: &Output,
    seed: &Output,
    options: StatelessRandomUniformOptions,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomUniform")
        .input(shape)
        .input(seed)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateless_random_uniform_full_int_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessRandomUniformFullIntOptions {
    /// `dtype`: type, `UInt64` by default.
    pub dtype: DType,
}

impl Default for StatelessRandomUniformFullIntOptions {
    fn default() -> Self {
        StatelessRandomUniformFullIntOptions { dtype: DType::UInt64 }
    }
}

/// `StatelessRandomUniformFullInt`: Any integers of the type, from a seed.
#[inline]
#[track_caller]
pub fn stateless_random_uniform_full_int(shape: &Output, seed: &Output) -> Output {
    stateless_random_uniform_full_int_with(
        shape,
        seed,
        StatelessRandomUniformFullIntOptions::default(),
    )
}

/// [`stateless_random_uniform_full_int()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_random_uniform_full_int_with(
    shape: &Output,
    seed: &Output,
    options: StatelessRandomUniformFullIntOptions,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomUniformFullInt")
        .input(shape)
        .input(seed)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateless_random_uniform_full_int_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessRandomUniformFullIntV2Options {
    /// `dtype`: type, `UInt64` by default.
    pub dtype: DType,
}

impl Default for StatelessRandomUniformFullIntV2Options {
    fn default() -> Self {
        StatelessRandomUniformFullIntV2Options { dtype: DType::UInt64 }
    }
}

/// `StatelessRandomUniformFullIntV2`: Any integers of the type, from a key and counter.
#[inline]
#[track_caller]
pub fn stateless_random_uniform_full_int_v2(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
) -> Output {
    stateless_random_uniform_full_int_v2_with(
        shape,
        key,
        counter,
        alg,
        StatelessRandomUniformFullIntV2Options::default(),
    )
}

/// [`stateless_random_uniform_full_int_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_random_uniform_full_int_v2_with(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
    options: StatelessRandomUniformFullIntV2Options,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomUniformFullIntV2")
        .input(shape)
        .input(key)
        .input(counter)
        .input(alg)
        .attr("dtype", options.dtype)
        .output()
}

/// `StatelessRandomUniformInt`: Integers uniform in \[minval, maxval), from a seed.
#[inline]
#[track_caller]
pub fn stateless_random_uniform_int(
    shape: &Output,
    seed: &Output,
    minval: &Output,
    maxval: &Output,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomUniformInt")
        .input(shape)
        .input(seed)
        .input(minval)
        .input(maxval)
        .output()
}

/// `StatelessRandomUniformIntV2`: Integers uniform in \[minval, maxval), from a key and counter.
#[inline]
#[track_caller]
pub fn stateless_random_uniform_int_v2(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
    minval: &Output,
    maxval: &Output,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomUniformIntV2")
        .input(shape)
        .input(key)
        .input(counter)
        .input(alg)
        .input(minval)
        .input(maxval)
        .output()
}

/// The attributes of [`stateless_random_uniform_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessRandomUniformV2Options {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatelessRandomUniformV2Options {
    fn default() -> Self {
        StatelessRandomUniformV2Options { dtype: DType::Float }
    }
}

/// `StatelessRandomUniformV2`: Values uniform in \[0, 1), from a key and counter.
#[inline]
#[track_caller]
pub fn stateless_random_uniform_v2(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
) -> Output {
    stateless_random_uniform_v2_with(
        shape,
        key,
        counter,
        alg,
        StatelessRandomUniformV2Options::default(),
    )
}

/// [`stateless_random_uniform_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_random_uniform_v2_with(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
    options: StatelessRandomUniformV2Options,
) -> Output {
    shape
        .graph()
        .op("StatelessRandomUniformV2")
        .input(shape)
        .input(key)
        .input(counter)
        .input(alg)
        .attr("dtype", options.dtype)
        .output()
}

/// `StatelessShuffle`: Rows in an order that a key and counter determine.
#[inline]
#[track_caller]
pub fn stateless_shuffle(value: &Output, key: &Output, counter: &Output, alg: &Output) -> Output {
    value.graph().op("StatelessShuffle").input(value).input(key).input(counter).input(alg).output()
}

/// The attributes of [`stateless_truncated_normal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessTruncatedNormalOptions {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatelessTruncatedNormalOptions {
    fn default() -> Self {
        StatelessTruncatedNormalOptions { dtype: DType::Float }
    }
}

/// `StatelessTruncatedNormal`: Normal values within two deviations, from a seed.
#[inline]
#[track_caller]
pub fn stateless_truncated_normal(shape: &Output, seed: &Output) -> Output {
    stateless_truncated_normal_with(shape, seed, StatelessTruncatedNormalOptions::default())
}

/// [`stateless_truncated_normal()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_truncated_normal_with(
    shape: &Output,
    seed: &Output,
    options: StatelessTruncatedNormalOptions,
) -> Output {
    shape
        .graph()
        .op("StatelessTruncatedNormal")
        .input(shape)
        .input(seed)
        .attr("dtype", options.dtype)
        .output()
}

/// The attributes of [`stateless_truncated_normal_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessTruncatedNormalV2Options {
    /// `dtype`: type, `Float` by default.
    pub dtype: DType,
}

impl Default for StatelessTruncatedNormalV2Options {
    fn default() -> Self {
        StatelessTruncatedNormalV2Options { dtype: DType::Float }
    }
}

/// `StatelessTruncatedNormalV2`: Normal values within two deviations, from a key and counter.
#[inline]
#[track_caller]
pub fn stateless_truncated_normal_v2(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
) -> Output {
    stateless_truncated_normal_v2_with(
        shape,
        key,
        counter,
        alg,
        StatelessTruncatedNormalV2Options::default(),
    )
}

/// [`stateless_truncated_normal_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_truncated_normal_v2_with(
    shape: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
    options: StatelessTruncatedNormalV2Options,
) -> Output {
    shape
        .graph()
        .op("StatelessTruncatedNormalV2")
        .input(shape)
        .input(key)
        .input(counter)
        .input(alg)
        .attr("dtype", options.dtype)
        .output()
}

/// `StochasticCastToInt`: Floats as integers, rounded up or down at random, so that their mean
/// stays.
#[inline]
#[track_caller]
pub fn stochastic_cast_to_int(
    input: &Output,
    key: &Output,
    counter: &Output,
    alg: &Output,
    tout: DType,
) -> Output {
    input
        .graph()
        .op("StochasticCastToInt")
        .input(input)
        .input(key)
        .input(counter)
        .input(alg)
        .attr("Tout", tout)
        .output()
}

/// The attributes of [`thread_unsafe_unigram_candidate_sampler_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ThreadUnsafeUnigramCandidateSamplerOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for ThreadUnsafeUnigramCandidateSamplerOptions {
    fn default() -> Self {
        ThreadUnsafeUnigramCandidateSamplerOptions { seed: 0, seed2: 0 }
    }
}

/// `ThreadUnsafeUnigramCandidateSampler`: Candidate classes drawn as often as they came in earlier
/// steps, and how often each was to be expected.
///
/// Returns (`sampled_candidates`, `true_expected_count`, `sampled_expected_count`).
#[inline]
#[track_caller]
pub fn thread_unsafe_unigram_candidate_sampler(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
) -> (Output, Output, Output) {
    thread_unsafe_unigram_candidate_sampler_with(
        true_classes,
        num_true,
        num_sampled,
        unique,
        range_max,
        ThreadUnsafeUnigramCandidateSamplerOptions::default(),
    )
}

/// [`thread_unsafe_unigram_candidate_sampler()`] with other attributes.
#[inline]
#[track_caller]
pub fn thread_unsafe_unigram_candidate_sampler_with(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
    options: ThreadUnsafeUnigramCandidateSamplerOptions,
) -> (Output, Output, Output) {
    let [sampled_candidates, true_expected_count, sampled_expected_count] = true_classes
        .graph()
        .op("ThreadUnsafeUnigramCandidateSampler")
        .input(true_classes)
        .attr("num_true", num_true)
        .attr("num_sampled", num_sampled)
        .attr("unique", unique)
        .attr("range_max", range_max)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .split();
    (sampled_candidates, true_expected_count, sampled_expected_count)
}

/// The attributes of [`truncated_normal_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TruncatedNormalOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for TruncatedNormalOptions {
    fn default() -> Self {
        TruncatedNormalOptions { seed: 0, seed2: 0 }
    }
}

/// `TruncatedNormal`: Standard normal values, redrawn where they lie beyond two deviations.
#[inline]
#[track_caller]
pub fn truncated_normal(shape: &Output, dtype: DType) -> Output {
    truncated_normal_with(shape, dtype, TruncatedNormalOptions::default())
}

/// [`truncated_normal()`] with other attributes.
#[inline]
#[track_caller]
pub fn truncated_normal_with(
    shape: &Output,
    dtype: DType,
    options: TruncatedNormalOptions,
) -> Output {
    shape
        .graph()
        .op("TruncatedNormal")
        .input(shape)
        .attr("dtype", dtype)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .output()
}

/// The attributes of [`uniform_candidate_sampler_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UniformCandidateSamplerOptions {
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
}

impl Default for UniformCandidateSamplerOptions {
    fn default() -> Self {
        UniformCandidateSamplerOptions { seed: 0, seed2: 0 }
    }
}

/// `UniformCandidateSampler`: Candidate classes drawn uniformly, and how often each was to be
/// expected.
///
/// Returns (`sampled_candidates`, `true_expected_count`, `sampled_expected_count`).
#[inline]
#[track_caller]
pub fn uniform_candidate_sampler(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
) -> (Output, Output, Output) {
    uniform_candidate_sampler_with(
        true_classes,
        num_true,
        num_sampled,
        unique,
        range_max,
        UniformCandidateSamplerOptions::default(),
    )
}

/// [`uniform_candidate_sampler()`] with other attributes.
#[inline]
#[track_caller]
pub fn uniform_candidate_sampler_with(
    true_classes: &Output,
    num_true: i64,
    num_sampled: i64,
    unique: bool,
    range_max: i64,
    options: UniformCandidateSamplerOptions,
) -> (Output, Output, Output) {
    let [sampled_candidates, true_expected_count, sampled_expected_count] = true_classes
        .graph()
        .op("UniformCandidateSampler")
        .input(true_classes)
        .attr("num_true", num_true)
        .attr("num_sampled", num_sampled)
        .attr("unique", unique)
        .attr("range_max", range_max)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .split();
    (sampled_candidates, true_expected_count, sampled_expected_count)
}
