//! Values that were taken out of Redis for a caller that has not read them yet. Pure.
//!
//! A caller's future may be dropped at any await point: before the hand-over, after it, or between being
//! woken and being polled. So the caller gets a guard, [`Held`], and the value stays in an [`Outbox`] until
//! it is read. Dropping the guard returns the value, and a shutdown returns all unread values: a future that
//! is never polled again must not take a value with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Holds values until they are read.
pub(crate) struct Outbox<T>(Arc<Inner<T>>);

struct Inner<T> {
    values: Mutex<Values<T>>,
    return_unread: Box<dyn Fn(T) + Send + Sync>,
}

struct Values<T> {
    unread: BTreeMap<u64, T>,
    next: u64,
    closed: bool,
}

/// One value. Dropping it unread returns the value.
#[must_use]
pub(crate) struct Held<T> {
    outbox: Outbox<T>,
    number: u64,
}

impl<T> Outbox<T> {
    /// `return_unread` gets the unread values. It runs under a lock, so it must be quick and must not use the
    /// outbox.
    pub(crate) fn new(return_unread: impl Fn(T) + Send + Sync + 'static) -> Self {
        let values = Mutex::new(Values { unread: BTreeMap::new(), next: 0, closed: false });
        Self(Arc::new(Inner { values, return_unread: Box::new(return_unread) }))
    }

    /// Adds a value. After [`Outbox::close`] the value is returned at once.
    pub(crate) fn hold(&self, value: T) -> Held<T> {
        let mut values = self.values();
        let number = values.next;
        values.next += 1;
        if values.closed {
            (self.0.return_unread)(value);
        } else {
            values.unread.insert(number, value);
        }
        drop(values);
        Held { outbox: self.clone(), number }
    }

    /// Returns all unread values, the last one first, and every value that is added from now on.
    pub(crate) fn close(&self) {
        let mut values = self.values();
        values.closed = true;
        std::mem::take(&mut values.unread).into_values().rev().for_each(&self.0.return_unread);
    }

    fn values(&self) -> MutexGuard<'_, Values<T>> {
        self.0.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Held<T> {
    /// Takes the value; from here on the caller owns it. `None` when a shutdown has returned it.
    pub(crate) fn read(self) -> Option<T> {
        self.outbox.values().unread.remove(&self.number)
    }

    /// Looks at the value. `None` when a shutdown has returned it.
    pub(crate) fn peek<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.outbox.values().unread.get(&self.number).map(read)
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        let mut values = self.outbox.values();
        // Under the lock: `close` finds the value either unread in the outbox or already returned.
        if let Some(value) = values.unread.remove(&self.number) {
            (self.outbox.0.return_unread)(value);
        }
    }
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Outbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("unread", &self.values().unread.len()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn outbox() -> (Outbox<&'static str>, mpsc::Receiver<&'static str>) {
        let (sender, back) = mpsc::channel();
        (Outbox::new(move |value| sender.send(value).unwrap()), back)
    }

    #[test]
    fn a_read_value_stays_and_a_dropped_one_is_returned() {
        let (outbox, back) = outbox();
        let (read, dropped) = (outbox.hold("read"), outbox.hold("dropped"));
        assert_eq!(read.read(), Some("read"));
        drop(dropped);
        assert_eq!(back.try_iter().collect::<Vec<_>>(), ["dropped"]);
        outbox.close();
        assert_eq!(back.try_iter().count(), 0);
    }

    #[test]
    fn closing_returns_unread_and_later_values_once() {
        let (outbox, back) = outbox();
        let (first, second) = (outbox.hold("first"), outbox.hold("second"));
        outbox.close();
        let late = outbox.hold("late");
        assert_eq!(back.try_iter().collect::<Vec<_>>(), ["second", "first", "late"]);
        assert_eq!([first, second, late].map(Held::read), [None; 3]);
        assert_eq!(back.try_iter().count(), 0);
    }

    #[test]
    fn debug_output_has_no_values() {
        let (outbox, _back) = outbox();
        let held = outbox.hold("secret");
        assert_eq!(format!("{outbox:?} {held:?}"), "Outbox { unread: 1, .. } Held { .. }");
    }
}
