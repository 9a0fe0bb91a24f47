//! What is worked out once for each type, and kept for good: there is as much of it as there are types in use, and who uses
//! it needs no lock.

use std::any::TypeId;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};
use std::thread::LocalKey;

use crate::CodecError;

/// What a thread had last; mostly it goes on with that.
pub(crate) type Last<V> = Cell<Option<(TypeId, &'static V)>>;

/// One value for each type.
pub(crate) struct PerType<V: 'static> {
    all: LazyLock<RwLock<HashMap<TypeId, &'static V>>>,
    last: &'static LocalKey<Last<V>>,
}

impl<V> PerType<V> {
    pub(crate) const fn new(last: &'static LocalKey<Last<V>>) -> Self {
        Self { all: LazyLock::new(Default::default), last }
    }

    /// The value of a type; made when first asked for.
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
                // Without a lock: what is made may ask for others.
                let value = make()?;
                let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
                *all.entry(id).or_insert_with(|| Box::leak(Box::new(value)))
            }
        };
        self.last.set(Some((id, value)));
        Ok(value)
    }
}
