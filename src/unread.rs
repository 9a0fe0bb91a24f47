//! What was taken out of Redis for a caller that has not read it yet. Pure.
//!
//! A caller's future may be dropped at any await point: before the hand-over, after it, or between being woken and being
//! polled. So what is handed over is a guard, [`Held`], and the value stays on a [`Shelf`] until it is read. A guard that
//! is dropped sends the value back, and a shutdown sends back whatever lies there: a future that is never polled again
//! must not take an element with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where values lie until they are read.
pub(crate) struct Shelf<T>(Arc<Inner<T>>);

struct Inner<T> {
    values: Mutex<Values<T>>,
    send_back: Box<dyn Fn(T) + Send + Sync>,
}

struct Values<T> {
    lying: BTreeMap<u64, T>,
    next: u64,
    closed: bool,
}

/// One value. Whoever drops it unread sends it back.
#[must_use]
pub(crate) struct Held<T> {
    shelf: Shelf<T>,
    number: u64,
}

impl<T> Shelf<T> {
    /// `send_back` takes what nobody read. It runs under a lock, so it is to be quick, and to keep away from the shelf.
    pub(crate) fn new(send_back: impl Fn(T) + Send + Sync + 'static) -> Self {
        let values = Mutex::new(Values { lying: BTreeMap::new(), next: 0, closed: false });
        Self(Arc::new(Inner { values, send_back: Box::new(send_back) }))
    }

    /// Puts a value there. After [`Shelf::close`] it is sent back at once.
    pub(crate) fn hold(&self, value: T) -> Held<T> {
        let mut values = self.values();
        let number = values.next;
        values.next += 1;
        if values.closed {
            (self.0.send_back)(value);
        } else {
            values.lying.insert(number, value);
        }
        drop(values);
        Held { shelf: self.clone(), number }
    }

    /// Sends everything back that has not been read, the last first, and whatever comes from now on.
    pub(crate) fn close(&self) {
        let mut values = self.values();
        values.closed = true;
        std::mem::take(&mut values.lying).into_values().rev().for_each(&self.0.send_back);
    }

    fn values(&self) -> MutexGuard<'_, Values<T>> {
        self.0.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Held<T> {
    /// Takes the value: from here on it is the caller's. `None` when it was sent back, by a shutdown.
    pub(crate) fn read(self) -> Option<T> {
        self.shelf.values().lying.remove(&self.number)
    }

    #[cfg(test)]
    pub(crate) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.shelf.values().lying.get(&self.number).map(look)
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        let mut values = self.shelf.values();
        // Under the lock: who closes the shelf finds the value either lying there or sent back.
        if let Some(value) = values.lying.remove(&self.number) {
            (self.shelf.0.send_back)(value);
        }
    }
}

impl<T> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Shelf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").field("lying", &self.values().lying.len()).finish_non_exhaustive()
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

    fn shelf() -> (Shelf<&'static str>, mpsc::Receiver<&'static str>) {
        let (sender, back) = mpsc::channel();
        (Shelf::new(move |value| sender.send(value).unwrap()), back)
    }

    #[test]
    fn what_is_read_stays_and_what_is_dropped_comes_back() {
        let (shelf, back) = shelf();
        let (read, dropped) = (shelf.hold("read"), shelf.hold("dropped"));
        assert_eq!(read.read(), Some("read"));
        drop(dropped);
        assert_eq!(back.try_iter().collect::<Vec<_>>(), ["dropped"]);
        shelf.close();
        assert_eq!(back.try_iter().count(), 0);
    }

    #[test]
    fn closing_sends_back_what_lies_there_and_what_comes_later_once() {
        let (shelf, back) = shelf();
        let (first, second) = (shelf.hold("first"), shelf.hold("second"));
        shelf.close();
        let late = shelf.hold("late");
        assert_eq!(back.try_iter().collect::<Vec<_>>(), ["second", "first", "late"]);
        assert_eq!([first, second, late].map(Held::read), [None; 3]);
        assert_eq!(back.try_iter().count(), 0);
    }
}
