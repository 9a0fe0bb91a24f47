//! Malformed entries.

use super::Inspector;
use super::cursor::Cursor;
use crate::admin::Quarantined;
use crate::error::Result;

impl From<&Quarantined> for Cursor {
    fn from(quarantined: &Quarantined) -> Self {
        let (index, items) = quarantined.position();
        Self::in_list(index, &items)
    }
}

impl Inspector {
    /// Reads up to `max` entries of the quarantine, the oldest first.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// for quarantined in inspector.quarantine("orders", None, 100).await? {
    ///     println!("due {:?}: {:x}", quarantined.due, quarantined.entry); // In hex.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn quarantine(
        &self,
        queue: impl AsRef<[u8]>,
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<Quarantined>> {
        let look = self.look("quarantine", queue);
        let elements = look.elements(look.keys.quarantine(), 2, after, max).await?;
        let row = |element: super::list::Element| {
            let [score, entry] = element.items.try_into().ok()?;
            Some(Quarantined::alone(look.keys.target().clone(), score, entry, element.index))
        };
        Ok(elements.into_iter().filter_map(row).collect())
    }
}
