//! A payload in the making.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use crate::jackson::failure::Outcome;
use crate::jackson::mapper::Mapper;
use crate::jackson::node::{MAX_DEPTH, beyond_depth};

#[derive(Default)]
pub(in crate::jackson) struct Output {
    pub(super) bytes: Vec<u8>,
    /// How many lists and objects are open, counted as the readers count them: a class in front of something
    /// is a list of two around it.
    pub(super) depth: usize,
    /// Inside of a `java.util.Optional`, which only a null one may be.
    pub(super) optional: bool,
    /// If it is not Redisson's own.
    pub(super) mapper: Option<Arc<Mapper>>,
    /// Of the objects that are being written, where each property is, in Java's order. Of one that is not
    /// there this is empty.
    pub(super) spans: Vec<Range<usize>>,
    /// The properties of a field that were just written, which are to be among the others.
    pub(super) rest: Vec<(String, Range<usize>)>,
}

/// More bytes than this are not kept for the thread's next payload.
const MAX_SPARE: usize = 1 << 16;

thread_local! {
    static SPARE: Cell<Option<Box<Output>>> = const { Cell::new(None) };
}

impl Output {
    /// An empty one for this mapper, or Redisson's, with the memory of the thread's last one.
    pub(in crate::jackson) fn take(mapper: Option<&Arc<Mapper>>) -> Box<Self> {
        let mut output = SPARE.take().unwrap_or_default();
        output.mapper = mapper.cloned();
        output
    }

    /// The payload. The memory is kept for the thread's next one.
    pub(in crate::jackson) fn finish(mut self: Box<Self>) -> Vec<u8> {
        if self.bytes.capacity().max(size_of::<Range<usize>>() * self.spans.capacity()) > MAX_SPARE {
            return self.bytes;
        }
        let payload = self.bytes.to_vec();
        self.bytes.clear();
        SPARE.set(Some(self));
        payload
    }

    /// Steps into this many levels.
    #[inline]
    pub(super) fn deeper(&mut self, levels: usize) -> Outcome<()> {
        self.allows(levels)?;
        self.depth += levels;
        Ok(())
    }

    #[inline]
    pub(super) fn shallower(&mut self, levels: usize) {
        self.depth -= levels;
    }

    /// Checks that this many more levels are read again.
    #[inline]
    pub(super) fn allows(&self, levels: usize) -> Outcome<()> {
        match self.depth + levels > MAX_DEPTH {
            true => Err(beyond_depth()),
            false => Ok(()),
        }
    }
}
