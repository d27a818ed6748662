//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::output::Output;
use ferroflow_core::DType;

/// The attributes of [`audio_spectrogram_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AudioSpectrogramOptions {
    /// `magnitude_squared`: bool, `false` by default.
    pub magnitude_squared: bool,
}

impl Default for AudioSpectrogramOptions {
    fn default() -> Self {
        AudioSpectrogramOptions { magnitude_squared: false }
    }
}

/// `AudioSpectrogram`: How loud each frequency is in sound, window by window.
#[inline]
#[track_caller]
pub fn audio_spectrogram(input: &Output, window_size: i64, stride: i64) -> Output {
    audio_spectrogram_with(input, window_size, stride, AudioSpectrogramOptions::default())
}

/// [`audio_spectrogram()`] with other attributes.
#[inline]
#[track_caller]
pub fn audio_spectrogram_with(
    input: &Output,
    window_size: i64,
    stride: i64,
    options: AudioSpectrogramOptions,
) -> Output {
    input
        .graph()
        .op("AudioSpectrogram")
        .input(input)
        .attr("window_size", window_size)
        .attr("stride", stride)
        .attr("magnitude_squared", options.magnitude_squared)
        .output()
}

/// `FFT`: Fourier transform along the last dimension.
#[inline]
#[track_caller]
pub fn fft(input: &Output) -> Output {
    input.graph().op("FFT").input(input).output()
}

/// `FFT2D`: Fourier transform of the last two dimensions.
#[inline]
#[track_caller]
pub fn fft2d(input: &Output) -> Output {
    input.graph().op("FFT2D").input(input).output()
}

/// `FFT3D`: Fourier transform of the last three dimensions.
#[inline]
#[track_caller]
pub fn fft3d(input: &Output) -> Output {
    input.graph().op("FFT3D").input(input).output()
}

/// `IFFT`: Inverse Fourier transform along the last dimension.
#[inline]
#[track_caller]
pub fn ifft(input: &Output) -> Output {
    input.graph().op("IFFT").input(input).output()
}

/// `IFFT2D`: Inverse of the transform of two dimensions.
#[inline]
#[track_caller]
pub fn ifft2d(input: &Output) -> Output {
    input.graph().op("IFFT2D").input(input).output()
}

/// `IFFT3D`: Inverse of the transform of three dimensions.
#[inline]
#[track_caller]
pub fn ifft3d(input: &Output) -> Output {
    input.graph().op("IFFT3D").input(input).output()
}

/// The attributes of [`irfft_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IRFFTOptions {
    /// `Treal`: type, `Float` by default.
    pub treal: DType,
}

impl Default for IRFFTOptions {
    fn default() -> Self {
        IRFFTOptions { treal: DType::Float }
    }
}

/// `IRFFT`: The real signal that half a spectrum over the last dimensions belongs to.
#[inline]
#[track_caller]
pub fn irfft(input: &Output, fft_length: &Output) -> Output {
    irfft_with(input, fft_length, IRFFTOptions::default())
}

/// [`irfft()`] with other attributes.
#[inline]
#[track_caller]
pub fn irfft_with(input: &Output, fft_length: &Output, options: IRFFTOptions) -> Output {
    input.graph().op("IRFFT").input(input).input(fft_length).attr("Treal", options.treal).output()
}

/// The attributes of [`irfft2d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IRFFT2DOptions {
    /// `Treal`: type, `Float` by default.
    pub treal: DType,
}

impl Default for IRFFT2DOptions {
    fn default() -> Self {
        IRFFT2DOptions { treal: DType::Float }
    }
}

/// `IRFFT2D`: The real signal that half a spectrum over the last dimensions belongs to.
#[inline]
#[track_caller]
pub fn irfft2d(input: &Output, fft_length: &Output) -> Output {
    irfft2d_with(input, fft_length, IRFFT2DOptions::default())
}

/// [`irfft2d()`] with other attributes.
#[inline]
#[track_caller]
pub fn irfft2d_with(input: &Output, fft_length: &Output, options: IRFFT2DOptions) -> Output {
    input.graph().op("IRFFT2D").input(input).input(fft_length).attr("Treal", options.treal).output()
}

/// The attributes of [`irfft3d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IRFFT3DOptions {
    /// `Treal`: type, `Float` by default.
    pub treal: DType,
}

impl Default for IRFFT3DOptions {
    fn default() -> Self {
        IRFFT3DOptions { treal: DType::Float }
    }
}

/// `IRFFT3D`: The real signal that half a spectrum over the last dimensions belongs to.
#[inline]
#[track_caller]
pub fn irfft3d(input: &Output, fft_length: &Output) -> Output {
    irfft3d_with(input, fft_length, IRFFT3DOptions::default())
}

/// [`irfft3d()`] with other attributes.
#[inline]
#[track_caller]
pub fn irfft3d_with(input: &Output, fft_length: &Output, options: IRFFT3DOptions) -> Output {
    input.graph().op("IRFFT3D").input(input).input(fft_length).attr("Treal", options.treal).output()
}

/// The attributes of [`mfcc_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MfccOptions {
    /// `upper_frequency_limit`: float, `4000.0` by default.
    pub upper_frequency_limit: f32,
    /// `lower_frequency_limit`: float, `20.0` by default.
    pub lower_frequency_limit: f32,
    /// `filterbank_channel_count`: int, `40` by default.
    pub filterbank_channel_count: i64,
    /// `dct_coefficient_count`: int, `13` by default.
    pub dct_coefficient_count: i64,
}

impl Default for MfccOptions {
    fn default() -> Self {
        MfccOptions {
            upper_frequency_limit: 4000.0,
            lower_frequency_limit: 20.0,
            filterbank_channel_count: 40,
            dct_coefficient_count: 13,
        }
    }
}

/// `Mfcc`: The mel-frequency cepstral coefficients of spectrograms.
#[inline]
#[track_caller]
pub fn mfcc(spectrogram: &Output, sample_rate: &Output) -> Output {
    mfcc_with(spectrogram, sample_rate, MfccOptions::default())
}

/// [`mfcc()`] with other attributes.
#[inline]
#[track_caller]
pub fn mfcc_with(spectrogram: &Output, sample_rate: &Output, options: MfccOptions) -> Output {
    spectrogram
        .graph()
        .op("Mfcc")
        .input(spectrogram)
        .input(sample_rate)
        .attr("upper_frequency_limit", options.upper_frequency_limit)
        .attr("lower_frequency_limit", options.lower_frequency_limit)
        .attr("filterbank_channel_count", options.filterbank_channel_count)
        .attr("dct_coefficient_count", options.dct_coefficient_count)
        .output()
}

/// The attributes of [`rfft_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RFFTOptions {
    /// `Tcomplex`: type, `Complex64` by default.
    pub tcomplex: DType,
}

impl Default for RFFTOptions {
    fn default() -> Self {
        RFFTOptions { tcomplex: DType::Complex64 }
    }
}

/// `RFFT`: Fourier transform of a real signal over the last dimensions; half is kept.
#[inline]
#[track_caller]
pub fn rfft(input: &Output, fft_length: &Output) -> Output {
    rfft_with(input, fft_length, RFFTOptions::default())
}

/// [`rfft()`] with other attributes.
#[inline]
#[track_caller]
pub fn rfft_with(input: &Output, fft_length: &Output, options: RFFTOptions) -> Output {
    input
        .graph()
        .op("RFFT")
        .input(input)
        .input(fft_length)
        .attr("Tcomplex", options.tcomplex)
        .output()
}

/// The attributes of [`rfft2d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RFFT2DOptions {
    /// `Tcomplex`: type, `Complex64` by default.
    pub tcomplex: DType,
}

impl Default for RFFT2DOptions {
    fn default() -> Self {
        RFFT2DOptions { tcomplex: DType::Complex64 }
    }
}

/// `RFFT2D`: Fourier transform of a real signal over the last dimensions; half is kept.
#[inline]
#[track_caller]
pub fn rfft2d(input: &Output, fft_length: &Output) -> Output {
    rfft2d_with(input, fft_length, RFFT2DOptions::default())
}

/// [`rfft2d()`] with other attributes.
#[inline]
#[track_caller]
pub fn rfft2d_with(input: &Output, fft_length: &Output, options: RFFT2DOptions) -> Output {
    input
        .graph()
        .op("RFFT2D")
        .input(input)
        .input(fft_length)
        .attr("Tcomplex", options.tcomplex)
        .output()
}

/// The attributes of [`rfft3d_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RFFT3DOptions {
    /// `Tcomplex`: type, `Complex64` by default.
    pub tcomplex: DType,
}

impl Default for RFFT3DOptions {
    fn default() -> Self {
        RFFT3DOptions { tcomplex: DType::Complex64 }
    }
}

/// `RFFT3D`: Fourier transform of a real signal over the last dimensions; half is kept.
#[inline]
#[track_caller]
pub fn rfft3d(input: &Output, fft_length: &Output) -> Output {
    rfft3d_with(input, fft_length, RFFT3DOptions::default())
}

/// [`rfft3d()`] with other attributes.
#[inline]
#[track_caller]
pub fn rfft3d_with(input: &Output, fft_length: &Output, options: RFFT3DOptions) -> Output {
    input
        .graph()
        .op("RFFT3D")
        .input(input)
        .input(fft_length)
        .attr("Tcomplex", options.tcomplex)
        .output()
}
