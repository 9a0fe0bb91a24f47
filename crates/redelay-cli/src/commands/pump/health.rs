//! What `pump --health` answers: numbers only.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use serde::Serialize;

use crate::http::{Page, Pages};

/// A program that has not looked for longer has stopped.
const OLD: Duration = Duration::from_secs(15);

/// How a pump is.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    /// Whether all is well.
    pub(crate) ok: bool,
    pub(crate) connected: bool,
    /// Whether the last search for queues has come to its end.
    pub(crate) searched: bool,
    /// The queues that are transferred for, and those of them whose last transfer failed.
    pub(crate) queues: usize,
    pub(crate) failing: usize,
    /// Queues beyond the most, or whose name is not clear.
    pub(crate) left_out: usize,
    pub(crate) transferred: u64,
    pub(crate) quarantined: u64,
}

/// The last report.
#[derive(Clone, Default)]
pub(crate) struct Health(Arc<Mutex<Option<(Report, Instant)>>>);

impl Health {
    pub(crate) fn set(&self, report: Report) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((report, Instant::now()));
    }

    fn page(&self) -> Page {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut report, is_new) = last.map(|(report, at)| (report, at.elapsed() < OLD)).unwrap_or_default();
        report.ok &= is_new;
        // Numbers and booleans are always JSON.
        let body = serde_json::to_string(&report).unwrap_or_default();
        Page { is_ok: report.ok, content_type: "application/json", body: (body + "\n").into() }
    }

    pub(crate) fn pages(&self) -> Pages {
        let health = self.clone();
        Arc::new(move |path| {
            let health = health.clone();
            (path == "/health").then(|| async move { health.page() }.boxed())
        })
    }
}
