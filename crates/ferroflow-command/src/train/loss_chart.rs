//! Draws the loss by global step as an SVG chart, one curve per worker.

use ferroflow::{Code, Error, Result};
use plotters::prelude::*;

const SIZE: (u32, u32) = (760, 440);
/// The number of horizontal pixels in which a chart shows points.
const MAX_POINTS: usize = 400;

/// Colours that stay apart in light and dark mode and for colour-blind readers.
const COLORS: [RGBColor; 6] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
];

/// The chart library writes black text and lines; these rules recolour them in dark mode.
const STYLE: &str = "<style>svg{background:#fff}\
    @media (prefers-color-scheme:dark){svg{background:#1b1b1f}\
    text[fill=\"#000000\"]{fill:#e4e4e7}[stroke=\"#000000\"]{stroke:#a1a1aa}}</style>";

/// One worker's losses by global step, in the order in which they were reported.
#[derive(Clone, Debug, Default)]
pub struct LossCurve {
    pub label: String,
    pub points: Vec<(i64, f32)>,
}

/// Draws the curves on a logarithmic loss axis, which also shows the end of training well.
pub fn svg(title: &str, curves: &[LossCurve]) -> Result<String> {
    let caption = format!("{title}: loss by global step");
    let labels = AxisLabels { caption, x: "global step", scale: 1.0 };
    styled(title, |text| draw(&labels, curves, text))
}

/// Draws a chart, and lets it follow dark mode.
fn styled(title: &str, draw: impl FnOnce(&mut String) -> Drawn) -> Result<String> {
    let mut text = String::new();
    draw(&mut text).map_err(|e| {
        Error::new(Code::Internal, format!("cannot draw the loss chart of {title}: {e}"))
    })?;
    // Inserts the rules after the opening tag.
    let at = text.find("<svg").and_then(|tag| Some(tag + text[tag..].find('>')? + 1));
    text.insert_str(at.unwrap_or(0), STYLE);
    Ok(text)
}

/// The losses of one way to train, by seconds since its first step.
#[derive(Clone, Debug, Default)]
pub struct TimeCurve {
    pub label: String,
    pub points: Vec<(f64, f32)>,
}

/// Draws losses by time, on a logarithmic loss axis. A point is the mean loss of an interval,
/// because the losses of single batches differ much.
pub fn by_time(title: &str, curves: &[TimeCurve]) -> Result<String> {
    let end = curves.iter().flat_map(|c| c.points.iter().map(|p| p.0)).fold(0.0, f64::max);
    let smooth = |c: &TimeCurve| LossCurve { label: c.label.clone(), points: moments(c, end) };
    let curves: Vec<LossCurve> = curves.iter().map(smooth).collect();
    let labels = AxisLabels {
        caption: format!("{title}: loss by time"),
        x: "seconds",
        scale: end.max(1e-9) / MOMENTS as f64,
    };
    styled(title, |text| draw(&labels, &curves, text))
}

/// The number of intervals in a chart.
const MOMENTS: i64 = 120;

/// The mean loss of each interval until `end`.
fn moments(curve: &TimeCurve, end: f64) -> Vec<(i64, f32)> {
    let mut sums = std::collections::BTreeMap::<i64, (f32, f32)>::new();
    for (seconds, loss) in curve.points.iter().filter(|(_, loss)| loss.is_finite()) {
        let moment = (seconds / end.max(1e-9) * MOMENTS as f64) as i64;
        let (sum, count) = sums.entry(moment).or_default();
        (*sum, *count) = (*sum + loss, *count + 1.0);
    }
    sums.into_iter().map(|(moment, (sum, count))| (moment, sum / count)).collect()
}

/// The labels of a chart's axes.
struct AxisLabels {
    caption: String,
    x: &'static str,
    /// The value of one step on the x axis.
    scale: f64,
}

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

fn draw(labels: &AxisLabels, curves: &[LossCurve], text: &mut String) -> Drawn {
    let (steps, losses) = ranges(curves);
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .caption(&labels.caption, ("sans-serif", 20))
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(steps, losses.log_scale())?;
    chart
        .configure_mesh()
        .x_desc(labels.x)
        .x_label_formatter(&|x| match labels.scale {
            1.0 => x.to_string(),
            scale => format!("{:.1}", *x as f64 * scale),
        })
        .y_desc("loss (log scale)")
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .y_label_formatter(&|loss| tick(*loss))
        .light_line_style(BLACK.mix(0.06))
        .draw()?;
    for (i, curve) in curves.iter().enumerate() {
        let color = COLORS[i % COLORS.len()];
        let drawn = LineSeries::new(thinned(&curve.points), color.stroke_width(2));
        let series = chart.draw_series(drawn)?;
        if curves.len() > 1 {
            series.label(curve.label.clone()).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 18, y)], color.stroke_width(3))
            });
        }
    }
    if curves.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .label_font(("sans-serif", 14))
            .legend_area_size(24)
            .draw()?;
    }
    area.present()?;
    Ok(())
}

/// The points that a logarithmic axis can show.
fn usable(points: &[(i64, f32)]) -> impl Iterator<Item = (i64, f64)> {
    let points = points.iter().filter(|(_, loss)| loss.is_finite() && *loss > 0.0);
    points.map(|&(step, loss)| (step, f64::from(loss)))
}

/// At most [`MAX_POINTS`] of the points, the last among them.
fn thinned(points: &[(i64, f32)]) -> Vec<(i64, f64)> {
    let all: Vec<(i64, f64)> = usable(points).collect();
    let every = all.len().div_ceil(MAX_POINTS).max(1);
    let last = all.last().filter(|_| !(all.len().saturating_sub(1)).is_multiple_of(every)).copied();
    all.into_iter().step_by(every).chain(last).collect()
}

/// The range of steps, and that of the losses, rounded outwards to powers of ten.
fn ranges(curves: &[LossCurve]) -> (std::ops::Range<i64>, std::ops::Range<f64>) {
    let all = || curves.iter().flat_map(|c| usable(&c.points));
    let first = all().map(|p| p.0).min().unwrap_or(0);
    let last = all().map(|p| p.0).max().unwrap_or(1).max(first + 1);
    let low = all().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let high = all().map(|p| p.1).fold(0.0, f64::max);
    if high == 0.0 {
        return (first..last, 0.1..1.0);
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil());
    // A little wider, or rounding may put a tick at either end outside the range.
    let (below, above) = (1.0 - 1e-6, 1.0 + 1e-6);
    (first..last, below * 10f64.powf(low)..above * 10f64.powf(high.max(low + 1.0)))
}

/// A label of the loss axis, without trailing zeros.
fn tick(loss: f64) -> String {
    match loss {
        loss if (1e-4..1e6).contains(&loss) => {
            let text = format!("{loss:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
        loss => format!("{loss:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(i64, f32)]) -> LossCurve {
        LossCurve { label: "worker 0".into(), points: points.to_vec() }
    }

    #[test]
    fn any_points_give_a_chart() {
        for points in [vec![], vec![(1, 1.0)], vec![(1, 1.0), (2, 0.1)], vec![(1, f32::NAN)]] {
            let svg = svg("x", &[curve(&points)]).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn ticks_are_round_and_axes_are_named() {
        let points: Vec<(i64, f32)> =
            (0..=2000).map(|i| (i, 93.9 * 0.9965f32.powi(i as i32))).collect();
        let svg = svg("linear", &[curve(&points)]).unwrap();
        for label in ["global step", "loss (log scale)", ">1000<", ">10<", ">0.1<"] {
            assert!(svg.replace('\n', "").contains(label), "no {label} in {svg}");
        }
    }

    #[test]
    fn the_ends_of_the_loss_axis_have_labels() {
        for low in -4..3 {
            for high in low + 1..6 {
                let [first, last] = [high, low].map(|power| 10f32.powi(power));
                let svg = svg("x", &[curve(&[(0, first * 0.99), (9, last * 1.01)])]).unwrap();
                for label in [low, high].map(|power| format!(">{}<", tick(10f64.powi(power)))) {
                    assert!(svg.replace('\n', "").contains(&label), "no {label} in {svg}");
                }
            }
        }
    }

    #[test]
    fn each_of_several_workers_has_a_curve_and_a_label() {
        let other = LossCurve { label: "worker 1".into(), points: vec![(1, 2.0), (9, 0.3)] };
        let svg = svg("x", &[curve(&[(0, 1.0), (8, 0.2)]), other]).unwrap();
        assert!(svg.contains("worker 0") && svg.contains("worker 1"), "{svg}");
        assert!(svg.contains("#D55E00") && svg.contains("#0072B2"), "{svg}");
    }

    #[test]
    fn losses_by_time_have_seconds_on_their_axis() {
        let curve = |label: &str, slow: f64| TimeCurve {
            label: label.into(),
            points: (0..400).map(|i| (i as f64 * slow, 2.0 / (1.0 + i as f32))).collect(),
        };
        let svg = by_time("cnn", &[curve("one", 0.05), curve("two", 0.03)]).unwrap();
        for text in ["loss by time", "seconds", "one", "two"] {
            assert!(svg.contains(text), "no {text} in {svg}");
        }
        assert!(by_time("x", &[TimeCurve::default()]).is_ok());
    }

    #[test]
    fn thinning_keeps_the_last_point() {
        let points: Vec<(i64, f32)> = (0..1000).map(|i| (i, 1.0)).collect();
        let kept = thinned(&points);
        assert!(kept.len() <= MAX_POINTS + 1);
        assert_eq!(kept.last().unwrap().0, 999);
    }
}
