//! What a subscriber of `tracing` is told of one test, while others run in the same process.

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

/// One event, or one span, with what was recorded of it later.
#[derive(Clone, Debug)]
pub struct Told {
    /// A span, not an event.
    pub is_span: bool,
    /// Its name.
    pub name: &'static str,
    /// Its level.
    pub level: Level,
    /// Its fields as text, `message` among them.
    pub fields: BTreeMap<&'static str, String>,
    /// Whether a span has ended.
    pub is_over: bool,
}

impl Visit for Told {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// Keeps what redelay tells on one thread: all of a test whose runtime is of that thread alone.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    told: Arc<Mutex<Vec<Told>>>,
    most: Option<Level>,
}

/// While it lives, its thread is listened to.
#[derive(Debug)]
pub struct Listening {
    /// It belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENER.with_borrow_mut(|listener| *listener = None);
    }
}

impl Listener {
    /// Listens to everything.
    #[must_use]
    pub fn start() -> (Self, Listening) {
        Self::default().listen()
    }

    /// Listens to this level and those that are more severe.
    #[must_use]
    pub fn up_to(level: Level) -> (Self, Listening) {
        Self { most: Some(level), ..Self::default() }.listen()
    }

    fn listen(self) -> (Self, Listening) {
        Router::install();
        LISTENER.with_borrow_mut(|listener| {
            let before = listener.replace(self.clone());
            assert!(before.is_none(), "somebody listens to this thread already");
        });
        (self, Listening { _not_send: PhantomData })
    }

    /// All that was told so far, the first first.
    #[must_use]
    pub fn all(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// The events and spans of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Vec<Told> {
        self.all().into_iter().filter(|told| told.name == name).collect()
    }

    /// The events.
    #[must_use]
    pub fn events(&self) -> Vec<Told> {
        self.all().into_iter().filter(|told| !told.is_span).collect()
    }

    fn add(&self, metadata: &Metadata<'static>, record: impl FnOnce(&mut dyn Visit)) -> usize {
        let mut told = Told {
            is_span: metadata.is_span(),
            name: metadata.name(),
            level: *metadata.level(),
            fields: BTreeMap::new(),
            is_over: false,
        };
        record(&mut told);
        let mut all = self.told.lock().unwrap();
        all.push(told);
        all.len() - 1
    }
}

thread_local! {
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// The listener of this thread; none in a thread that ends.
fn listener() -> Option<Listener> {
    LISTENER.try_with(|listener| listener.borrow().clone()).ok().flatten()
}

/// The subscriber of the process, which passes everything on to the listener of the thread.
///
/// A subscriber for each test, by `set_default`, would miss things where tests run side by side: when there is one such
/// subscriber, and another thread is the first to reach an event, `tracing` asks that thread, which has none, and notes
/// for the whole process that nobody is interested.
#[derive(Debug, Default)]
struct Router {
    /// Whose span it is, and where in the listener's list.
    spans: Mutex<HashMap<u64, (Listener, usize)>>,
    ids: AtomicU64,
}

impl Router {
    fn install() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            set_global_default(Self::default()).expect("no other subscriber in a process of tests");
            // What was reached while this one was becoming the default may have found nobody.
            tracing::callsite::rebuild_interest_cache();
        });
    }

    fn change(&self, span: &Id, change: impl FnOnce(&mut Told)) {
        if let Some((listener, at)) = self.spans.lock().unwrap().get(&span.into_u64()) {
            change(&mut listener.told.lock().unwrap()[*at]);
        }
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
            let at = listener.add(span.metadata(), |visit| span.record(visit));
            self.spans.lock().unwrap().insert(id, (listener, at));
        }
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.change(span, |told| values.record(told));
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(listener) = listener() {
            listener.add(event.metadata(), |visit| event.record(visit));
        }
    }

    fn try_close(&self, span: Id) -> bool {
        self.change(&span, |told| told.is_over = true);
        self.spans.lock().unwrap().remove(&span.into_u64());
        true
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
