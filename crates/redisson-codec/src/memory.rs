//! How much memory the values of a compressed payload may take.
//!
//! A value in memory takes 32 bytes and more, and one byte in a payload. Without compression the sender of
//! such a payload has to send these bytes; with it, a few kilobytes are millions of values. So a compression
//! limits what the codec inside of it builds, and the codecs say of each list how much longer it gets.
//!
//! Some of what is once in a payload is often in memory: the names of classes, and what Java's own
//! serialization refers to. The readers of these limit it themselves, with and without compression.

use std::cell::Cell;
#[cfg(feature = "_java")]
use std::fmt;

/// What an allocation takes on top.
#[cfg(feature = "_java")]
const ALLOCATION: usize = 16;

/// About what a short text takes, such as the name of a field.
#[cfg(feature = "kryo")]
pub(crate) const SHORT: usize = 32;

/// Without a compression there is no limit.
const UNLIMITED: usize = usize::MAX;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(UNLIMITED) };
}

/// Decodes with this many bytes for values at most.
#[cfg(feature = "_compressed")]
pub(crate) fn within<T>(bytes: usize, decode: impl FnOnce() -> T) -> T {
    struct Restore(usize);

    impl Drop for Restore {
        fn drop(&mut self) {
            LEFT.set(self.0);
        }
    }

    let before = LEFT.get();
    let _restore = Restore(before);
    LEFT.set(before.min(bytes));
    decode()
}

/// The values take more.
#[cfg(feature = "_java")]
#[derive(Debug)]
pub(crate) struct TooMuch;

#[cfg(feature = "_java")]
impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its values take too much memory for the limit of the compression")
    }
}

/// Counts an allocation of this many bytes.
#[cfg(feature = "_java")]
#[inline]
pub(crate) fn take(bytes: usize) -> Result<(), TooMuch> {
    match LEFT.get() {
        UNLIMITED => Ok(()),
        left => {
            LEFT.set(left.checked_sub(bytes + ALLOCATION).ok_or(TooMuch)?);
            Ok(())
        }
    }
}

/// Appends to a list of unknown length.
#[cfg(feature = "_java")]
#[inline]
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) -> Result<(), TooMuch> {
    room(list)?;
    list.push(value);
    Ok(())
}

/// Makes room for one more element. So this can be made in its place: to move it may take longer.
#[cfg(feature = "_java")]
#[inline]
pub(crate) fn room<T>(list: &mut Vec<T>) -> Result<(), TooMuch> {
    if list.len() == list.capacity() { grow(list) } else { Ok(()) }
}

#[cfg(feature = "_java")]
#[cold]
fn grow<T>(list: &mut Vec<T>) -> Result<(), TooMuch> {
    // Twice as long each time would leave half of a long list unused.
    const LONG: usize = 1024;
    let length = list.len();
    let more = if length < LONG { length.max(4) } else { length / 4 };
    take(more * size_of::<T>())?;
    list.reserve_exact(more);
    Ok(())
}

/// An empty list of unknown length, with room for the usual number of elements, unless memory is limited.
#[cfg(any(feature = "_jackson", feature = "classes"))]
#[inline]
pub(crate) fn usual<T>(length: usize) -> Vec<T> {
    match LEFT.get() {
        UNLIMITED => Vec::with_capacity(length),
        _ => Vec::new(),
    }
}

/// Counts an element that the caller appends to a list. `done` is how many of `total` are in it.
#[cfg(feature = "_java")]
#[inline]
pub(crate) fn element<T>(done: usize, total: usize) -> Result<(), TooMuch> {
    // Only now and then, since each takes time.
    const AT_ONCE: usize = 64;
    match done.is_multiple_of(AT_ONCE) {
        true => take(AT_ONCE.min(total.saturating_sub(done)) * size_of::<T>()),
        false => Ok(()),
    }
}

/// An empty list for this many elements, which are there for sure.
#[cfg(feature = "_jackson")]
pub(crate) fn list<T>(length: usize) -> Result<Vec<T>, TooMuch> {
    take(length * size_of::<T>())?;
    Ok(Vec::with_capacity(length))
}

#[cfg(all(test, feature = "_java"))]
mod tests {
    use super::*;

    #[cfg(feature = "_compressed")]
    #[test]
    fn each_element_is_counted_once() {
        for total in [0, 1, 63, 64, 65, 200] {
            let list = || (0..total).try_for_each(|done| element::<u64>(done, total)).is_ok();
            let needed = 8 * total + ALLOCATION * total.div_ceil(64);
            assert!(within(needed, list), "{total}");
            assert!(total == 0 || !within(needed - 1, list), "{total}");
        }
    }

    #[test]
    fn lists_grow_within_the_limit() {
        let fill = |count: usize| {
            let mut list = Vec::new();
            let pushed = (0..count).try_for_each(|number| push(&mut list, number as u64));
            assert!(
                list.capacity() <= (2 * list.len()).max(4)
                    && (list.len() < 2000 || list.capacity() <= 5 * list.len() / 4 + 1)
            );
            pushed.is_ok()
        };
        assert!(fill(100_000));
        #[cfg(feature = "_compressed")]
        {
            assert!(within(1_000_000, || fill(100_000)));
            assert!(!within(1_000_000, || fill(130_000)));
            assert!(!within(1_000_000, || fill(70_000) && fill(70_000)));
            // One within the other takes from what is left, and afterwards nothing is limited.
            assert!(!within(1000, || within(1_000_000, || fill(1000))));
        }
        assert!(fill(200_000));
    }
}
