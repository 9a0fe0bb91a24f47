//! [`Uuid`] and `uuid::Uuid`.

use crate::java::Uuid;

/// # Examples
/// ```
/// use redisson_codec::java;
///
/// let id = uuid::uuid!("00112233-4455-6677-8899-aabbccddeeff");
/// assert_eq!(java::Uuid::from(id).to_string(), id.to_string());
/// assert_eq!(uuid::Uuid::from(java::Uuid::from(id)), id);
/// ```
impl From<uuid::Uuid> for Uuid {
    fn from(uuid: uuid::Uuid) -> Self {
        Self::from_bytes(uuid.into_bytes())
    }
}

impl From<Uuid> for uuid::Uuid {
    fn from(uuid: Uuid) -> Self {
        Self::from_bytes(uuid.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_ways(bytes: [u8; 16]) {
            let java = Uuid::from_bytes(bytes);
            let other = uuid::Uuid::from(java);
            prop_assert_eq!(other.to_string(), java.to_string());
            prop_assert_eq!(Uuid::from(other), java);
        }
    }
}
