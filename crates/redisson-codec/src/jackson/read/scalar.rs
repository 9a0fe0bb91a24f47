//! Values that are no structs, lists or maps.

use std::fmt::Display;

use super::ValueReader;
use crate::jackson::failure::Outcome;
use crate::jackson::node::Node;
use crate::jackson::times;
use crate::jackson::value::{self, as_text};
use crate::jackson::write::written_class;
use crate::java::shape::Kind;

impl<'n, 'a> ValueReader<'n, 'a> {
    #[inline]
    pub(super) fn scalar<T>(
        &self,
        class: &str,
        what: impl Display,
        read: impl FnOnce(&'n Node<'a>) -> Option<T>,
    ) -> Outcome<T> {
        let node = self.bare(class)?;
        read(node).ok_or_else(|| ValueReader { node, ..*self }.wrong(what))
    }

    #[inline]
    pub(super) fn integer<T: TryFrom<i64>>(&self, class: &str) -> Outcome<T> {
        self.scalar(class, format_args!("a {class}"), value::integer)
    }

    pub(super) fn bytes(&self) -> Outcome<Vec<u8>> {
        self.scalar("[B", "bytes", |node| value::bytes(node).map(|bytes| bytes.into_owned()))
    }

    #[inline]
    pub(super) fn text(&self) -> Outcome<&'n str> {
        let class = match self.expected().kind {
            Kind::Text(class) => class.name,
            Kind::Character => "java.lang.Character",
            _ => "java.lang.String",
        };
        self.scalar(class, "text", as_text)
    }

    /// The text of a time, which may be numbers.
    #[cold]
    pub(super) fn time(&self, class: &'static str) -> Outcome<String> {
        let class = written_class(class);
        self.scalar(class, format_args!("a {class}"), |node| times::read_text(class, node))
    }

    pub(super) fn value(&self) -> Outcome<crate::java::Value> {
        self.placed(value::read(self.node, self.root, self.context.mapper))
    }
}
