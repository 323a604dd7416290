//! What the server counts: for Prometheus as text, for people as figures of the last minutes.
//!
//! Everything is an atomic number that is found before the request comes: no name is looked up and nothing is locked on its way.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the latency histograms, in microseconds.
pub(crate) const BOUNDS: [u64; 28] = [
    50, 75, 100, 150, 200, 300, 400, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_500, 10_000,
    15_000, 20_000, 30_000, 50_000, 75_000, 100_000, 200_000, 500_000, 1_000_000, 5_000_000, 10_000_000,
];

/// Times, counted by how long they are.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_micros: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum_micros: AtomicU64::new(0) }
    }
}

/// How many times were how long, at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counts(pub(crate) [u64; BOUNDS.len() + 1]);

impl Default for Counts {
    fn default() -> Self {
        Counts([0; BOUNDS.len() + 1])
    }
}

impl Histogram {
    pub(crate) fn record(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS.partition_point(|bound| *bound < micros);
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (to, from) in counts.0.iter_mut().zip(&self.counts) {
            *to = from.load(Ordering::Relaxed);
        }
        counts
    }
}

impl Counts {
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn since(&self, before: &Counts) -> Counts {
        let mut difference = Counts::default();
        for (to, (now, before)) in difference.0.iter_mut().zip(self.0.iter().zip(&before.0)) {
            *to = now.saturating_sub(*before);
        }
        difference
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        for (to, from) in self.0.iter_mut().zip(&other.0) {
            *to += from;
        }
    }

    /// The time, in milliseconds, that this share of requests does not exceed, between the bounds where it lies.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let wanted = share * total as f64;
        let (mut below, mut lower) = (0u64, 0u64);
        for (count, upper) in self.0.iter().zip(BOUNDS.iter().chain(BOUNDS.last())) {
            if *count > 0 && (below + count) as f64 >= wanted {
                let within = ((wanted - below as f64) / *count as f64).clamp(0.0, 1.0);
                return Some((lower as f64 + within * (upper - lower) as f64) / 1_000.0);
            }
            below += count;
            lower = *upper;
        }
        None
    }
}

/// The routes whose figures are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Recommend,
    Batch,
    Similar,
    Popular,
    Items,
    Model,
    Admin,
    Health,
    Other,
}

/// All routes with their names.
pub(crate) const ROUTES: [(Route, &str); 9] = [
    (Route::Recommend, "recommend"),
    (Route::Batch, "batch"),
    (Route::Similar, "similar"),
    (Route::Popular, "popular"),
    (Route::Items, "items"),
    (Route::Model, "model"),
    (Route::Admin, "admin"),
    (Route::Health, "health"),
    (Route::Other, "other"),
];

/// Figures of a route.
#[derive(Debug, Default)]
pub(crate) struct RouteMetrics {
    pub(crate) latency: Histogram,
    /// Responses by the first digit of their status.
    pub(crate) by_class: [AtomicU64; 6],
}

/// Figures of a model.
#[derive(Debug, Default)]
pub(crate) struct ModelMetrics {
    pub(crate) answers: AtomicU64,
    pub(crate) history_items: AtomicU64,
    pub(crate) unknown_items: AtomicU64,
    pub(crate) fallbacks: AtomicU64,
    pub(crate) scoring: Histogram,
}

/// One of the figures of a model.
type Of = fn(&ModelMetrics) -> &AtomicU64;

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    routes: [RouteMetrics; ROUTES.len()],
    models: Mutex<BTreeMap<Box<str>, Arc<ModelMetrics>>>,
    pub(crate) in_flight: AtomicI64,
    pub(crate) connections: AtomicI64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) unauthorized: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) reloads_refused: AtomicU64,
}

/// Adds one for as long as it lives.
pub(crate) struct Gauge<'a>(&'a AtomicI64);

impl<'a> Gauge<'a> {
    pub(crate) fn enter(gauge: &'a AtomicI64) -> (Self, i64) {
        let before = gauge.fetch_add(1, Ordering::Relaxed);
        (Gauge(gauge), before)
    }
}

impl Drop for Gauge<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn route(&self, route: Route) -> Option<&RouteMetrics> {
        self.routes.get(route as usize)
    }

    /// The figures of a model by name.
    pub(crate) fn model(&self, name: &str) -> Arc<ModelMetrics> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(models.entry(name.into()).or_default())
    }

    /// Latencies of everything that answers, not of health checks and the like.
    pub(crate) fn answered(&self) -> Counts {
        let mut all = Counts::default();
        for route in [Route::Recommend, Route::Batch, Route::Similar, Route::Popular] {
            if let Some(route) = self.route(route) {
                all.add(&route.latency.counts());
            }
        }
        all
    }

    /// Responses of all routes whose status begins with this digit.
    pub(crate) fn responses(&self, class: usize) -> u64 {
        let of =
            |route: &RouteMetrics| route.by_class.get(class).map_or(0, |count| count.load(Ordering::Relaxed));
        self.routes.iter().map(of).sum()
    }

    /// All of it as Prometheus reads it.
    pub(crate) fn render(&self, text: &mut String) {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        head(text, "satf_requests_total", "counter", "Responses by route and class of status.");
        for ((_, name), route) in ROUTES.iter().zip(&self.routes) {
            for (class, count) in route.by_class.iter().enumerate().filter(|(_, count)| get(count) > 0) {
                let _ = writeln!(
                    text,
                    "satf_requests_total{{route=\"{name}\",status=\"{class}xx\"}} {}",
                    get(count)
                );
            }
        }
        head(
            text,
            "satf_request_seconds",
            "histogram",
            "Time from the headers of a request to its response.",
        );
        for ((_, name), route) in ROUTES.iter().zip(&self.routes) {
            histogram(text, "satf_request_seconds", &format!("route=\"{name}\""), &route.latency);
        }
        for (name, kind, help, value) in [
            ("satf_in_flight", "gauge", "Requests under way.", self.in_flight.load(Ordering::Relaxed)),
            ("satf_connections", "gauge", "Open connections.", self.connections.load(Ordering::Relaxed)),
        ] {
            head(text, name, kind, help);
            let _ = writeln!(text, "{name} {value}");
        }
        for (name, help, count) in [
            ("satf_rejected_total", "Requests that were refused because of overload.", &self.rejected),
            ("satf_connections_refused_total", "Connections beyond the limit.", &self.connections_refused),
            ("satf_unauthorized_total", "Requests without a key that allows them.", &self.unauthorized),
            ("satf_reloads_total", "Model sets that replaced another.", &self.reloads),
            ("satf_reloads_refused_total", "Files that were refused.", &self.reloads_refused),
        ] {
            head(text, name, "counter", help);
            let _ = writeln!(text, "{name} {}", get(count));
        }
        let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        let counters: [(&str, &str, Of); 4] = [
            ("satf_answers_total", "Histories answered, by model.", |model| &model.answers),
            ("satf_history_items_total", "Known items of histories.", |model| &model.history_items),
            ("satf_unknown_items_total", "Items of histories that the model does not know.", |model| {
                &model.unknown_items
            }),
            ("satf_fallbacks_total", "Histories without a known item.", |model| &model.fallbacks),
        ];
        for (name, help, of) in counters {
            head(text, name, "counter", help);
            for (model, metrics) in &*models {
                let _ = writeln!(text, "{name}{{model=\"{}\"}} {}", escaped(model), get(of(metrics)));
            }
        }
        head(text, "satf_scoring_seconds", "histogram", "Time to compute the answer to a history.");
        for (model, metrics) in &*models {
            histogram(
                text,
                "satf_scoring_seconds",
                &format!("model=\"{}\"", escaped(model)),
                &metrics.scoring,
            );
        }
    }
}

pub(crate) fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// The value of a label as Prometheus has it.
pub(crate) fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn histogram(text: &mut String, name: &str, labels: &str, histogram: &Histogram) {
    let counts = histogram.counts();
    if counts.total() == 0 {
        return;
    }
    let mut below = 0;
    for (count, bound) in counts.0.iter().zip(BOUNDS) {
        below += count;
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{}\"}} {below}", bound as f64 / 1e6);
    }
    let (total, sum) = (counts.total(), histogram.sum_micros.load(Ordering::Relaxed) as f64 / 1e6);
    let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {total}");
    let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {total}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_bounds_of_their_bucket() {
        let histogram = Histogram::default();
        assert_eq!(histogram.counts().quantile(0.5), None);
        for micros in [40, 120, 120, 120, 9_000, 60_000_000] {
            histogram.record(Duration::from_micros(micros));
        }
        let counts = histogram.counts();
        assert_eq!(counts.total(), 6);
        let median = counts.quantile(0.5).unwrap();
        assert!((0.1..=0.15).contains(&median), "{median}");
        assert!((7.5..=10.0).contains(&counts.quantile(0.83).unwrap()));
        assert_eq!(counts.quantile(1.0), Some(10_000.0));
        assert_eq!(counts.since(&counts).total(), 0);
    }

    #[test]
    fn what_prometheus_reads_is_cumulative_and_labels_are_escaped() {
        let metrics = Metrics::default();
        metrics.model("a\"b").scoring.record(Duration::from_micros(80));
        metrics.route(Route::Recommend).unwrap().latency.record(Duration::from_micros(80));
        let mut text = String::new();
        metrics.render(&mut text);
        assert!(
            text.contains("satf_request_seconds_bucket{route=\"recommend\",le=\"0.000075\"} 0\n"),
            "{text}"
        );
        assert!(text.contains("satf_request_seconds_bucket{route=\"recommend\",le=\"0.0001\"} 1\n"));
        assert!(text.contains("satf_request_seconds_bucket{route=\"recommend\",le=\"+Inf\"} 1\n"));
        assert!(text.contains("satf_answers_total{model=\"a\\\"b\"} 0\n"));
    }
}
