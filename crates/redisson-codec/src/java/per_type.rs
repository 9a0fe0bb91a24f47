//! A cache with one value for each Rust type. Values are never freed, so reading them needs no lock. The size
//! of the cache is bounded by the number of types in the program.

use std::any::TypeId;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};
use std::thread::LocalKey;

use crate::CodecError;

/// The entry that a thread used last, which it mostly uses next, too.
pub(crate) type Last<V> = Cell<Option<(TypeId, &'static V)>>;

/// One value per type.
pub(crate) struct PerType<V: 'static> {
    all: LazyLock<RwLock<HashMap<TypeId, &'static V>>>,
    last: &'static LocalKey<Last<V>>,
}

impl<V> PerType<V> {
    pub(crate) const fn new(last: &'static LocalKey<Last<V>>) -> Self {
        Self { all: LazyLock::new(Default::default), last }
    }

    /// The value of a type. Made on first use.
    #[inline]
    pub(crate) fn of<T: 'static>(
        &self,
        make: fn() -> Result<V, CodecError>,
    ) -> Result<&'static V, CodecError> {
        let id = TypeId::of::<T>();
        match self.last.get() {
            Some((last, value)) if last == id => Ok(value),
            _ => self.shared(id, make),
        }
    }

    #[cold]
    fn shared(&self, id: TypeId, make: fn() -> Result<V, CodecError>) -> Result<&'static V, CodecError> {
        let known = self.all.read().unwrap_or_else(PoisonError::into_inner).get(&id).copied();
        let value = match known {
            Some(value) => value,
            None => {
                // Without holding the lock, because `make` may need the values of other types.
                let value = make()?;
                let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
                *all.entry(id).or_insert_with(|| Box::leak(Box::new(value)))
            }
        };
        self.last.set(Some((id, value)));
        Ok(value)
    }
}
