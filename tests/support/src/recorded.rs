//! Records the events and spans of one test, while others run in the same process.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_global_default};
use tracing::{Event, Level, Metadata, Subscriber};

/// An event or a span.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Whether it is a span. Otherwise it is an event.
    pub is_span: bool,
    /// Its name.
    pub name: &'static str,
    /// Its level.
    pub level: Level,
    /// Its fields as text, including `message`. Later values replace earlier ones.
    pub fields: BTreeMap<&'static str, String>,
    /// The span that it is in.
    pub parent: Option<&'static str>,
    /// Whether the span has ended.
    pub is_over: bool,
}

impl Visit for Recorded {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// Records the events and spans of one thread, which are those of a test with a single-threaded runtime.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    recorded: Arc<Mutex<Vec<Recorded>>>,
    most: Option<Level>,
}

/// Its thread is recorded until it is dropped.
#[derive(Debug)]
pub struct Listening {
    /// Not `Send`: dropping it ends the recording of the current thread.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENER.with_borrow_mut(|listener| *listener = None);
    }
}

impl Listener {
    /// Records every level.
    #[must_use]
    pub fn start() -> (Self, Listening) {
        Self::default().listen()
    }

    /// Records this level and more severe ones.
    #[must_use]
    pub fn up_to(level: Level) -> (Self, Listening) {
        Self { most: Some(level), ..Self::default() }.listen()
    }

    fn listen(self) -> (Self, Listening) {
        Router::install();
        LISTENER.with_borrow_mut(|listener| {
            let before = listener.replace(self.clone());
            assert!(before.is_none(), "this thread already has a listener");
        });
        (self, Listening { _not_send: PhantomData })
    }

    /// Everything recorded so far, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Recorded> {
        self.recorded.lock().unwrap().clone()
    }

    /// The events and spans with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<Recorded> {
        self.all().into_iter().filter(|recorded| recorded.name == name).collect()
    }

    /// The events.
    #[must_use]
    pub fn events(&self) -> Vec<Recorded> {
        self.all().into_iter().filter(|recorded| !recorded.is_span).collect()
    }

    fn add(
        &self,
        metadata: &Metadata<'static>,
        parent: Option<&'static str>,
        record: impl FnOnce(&mut dyn Visit),
    ) -> usize {
        let mut recorded = Recorded {
            is_span: metadata.is_span(),
            name: metadata.name(),
            level: *metadata.level(),
            fields: BTreeMap::new(),
            parent,
            is_over: false,
        };
        record(&mut recorded);
        let mut all = self.recorded.lock().unwrap();
        all.push(recorded);
        all.len() - 1
    }
}

thread_local! {
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
    /// The spans that this thread is in.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The listener of this thread. A thread that is ending has none.
fn listener() -> Option<Listener> {
    LISTENER.try_with(|listener| listener.borrow().clone()).ok().flatten()
}

/// A span that has not ended.
#[derive(Debug)]
struct Open {
    listener: Listener,
    /// Its place in the list of the listener.
    at: usize,
    name: &'static str,
    handles: usize,
}

/// The subscriber of the process. It passes everything on to the listener of the thread.
///
/// One subscriber per test, set by `set_default`, would miss events when tests run in parallel. If the first
/// thread to reach an event has no subscriber, `tracing` caches for the whole process that nobody is
/// interested in that event.
#[derive(Debug, Default)]
struct Router {
    spans: Mutex<HashMap<u64, Open>>,
    ids: AtomicU64,
}

impl Router {
    fn install() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            set_global_default(Self::default()).expect("no other subscriber in a process of tests");
            // An event that was reached before this subscriber was the default is cached as uninteresting.
            tracing::callsite::rebuild_interest_cache();
        });
    }

    fn change(&self, span: &Id, change: impl FnOnce(&mut Recorded)) {
        if let Some(Open { listener, at, .. }) = self.spans.lock().unwrap().get(&span.into_u64()) {
            change(&mut listener.recorded.lock().unwrap()[*at]);
        }
    }

    /// The name of this span; without one, of the span that the thread is in.
    fn name(&self, span: Option<&Id>) -> Option<&'static str> {
        let id = span.map(Id::into_u64).or_else(|| ENTERED.with_borrow(|entered| entered.last().copied()))?;
        self.spans.lock().unwrap().get(&id).map(|open| open.name)
    }
}

impl Subscriber for Router {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target() == "redelay" { Interest::sometimes() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_wanted = |listener: Listener| listener.most.is_none_or(|most| *metadata.level() <= most);
        metadata.target() == "redelay" && listener().is_some_and(is_wanted)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(listener) = listener() {
            let at = listener.add(span.metadata(), self.name(span.parent()), |visit| span.record(visit));
            let open = Open { listener, at, name: span.metadata().name(), handles: 1 };
            self.spans.lock().unwrap().insert(id, open);
        }
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.change(span, |recorded| values.record(recorded));
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(listener) = listener() {
            listener.add(event.metadata(), self.name(event.parent()), |visit| event.record(visit));
        }
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(open) = self.spans.lock().unwrap().get_mut(&span.into_u64()) {
            open.handles += 1;
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        if let Some(open) = self.spans.lock().unwrap().get_mut(&span.into_u64()) {
            open.handles -= 1;
            if open.handles > 0 {
                return false;
            }
        }
        self.change(&span, |recorded| recorded.is_over = true);
        self.spans.lock().unwrap().remove(&span.into_u64());
        true
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(at) = entered.iter().rposition(|other| *other == span.into_u64()) {
                entered.remove(at);
            }
        });
    }
}
