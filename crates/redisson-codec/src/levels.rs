//! How deep values nest.

/// The most levels of a value in each codec, both ways: the limit of `serde_json`. Types that contain
/// themselves are read by recursion, which takes a few KiB of stack a level.
pub(crate) const MAX_DEPTH: usize = 127;
