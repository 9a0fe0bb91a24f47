//! Pops whose replies no client has confirmed, by their ids.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Inspector;
use super::cursor::{Cursor, Inner};
use super::page_size::PageSize;
use crate::admin::UnconfirmedPop;
use crate::conn::Command;
use crate::error::Result;

/// How many fields one command looks at: it brings some more.
const COUNT: usize = 500;

impl From<&UnconfirmedPop> for Cursor {
    fn from(pop: &UnconfirmedPop) -> Self {
        Self(Inner::Name(Bytes::copy_from_slice(pop.id.as_bytes())))
    }
}

impl Inspector {
    /// Reads up to `max` pops whose replies no client has confirmed, of any age, the oldest first. Those of
    /// the last 20 ms are in flight, most likely; older ones are of processes that have died. Each call reads
    /// the copies of all pops, because their order is that of their ids.
    ///
    /// # Errors
    /// As [`pending`](Self::pending), with the permissions `HSCAN` and `TIME`.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// for pop in inspector.unconfirmed_pops("orders", None, 100).await? {
    ///     println!("{}: {} payloads, {:?} ago", pop.id, pop.payloads.len(), pop.age);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn unconfirmed_pops(
        &self,
        queue: impl AsRef<[u8]>,
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<UnconfirmedPop>> {
        let look = self.look("unconfirmed_pops", queue);
        let after = match after {
            None => None,
            Some(Cursor(Inner::Name(id))) => Some(id),
            Some(other) => return Err(look.foreign(&other)),
        };
        let clock = look.millis().await?;
        let (mut pops, mut size) = (BTreeMap::new(), PageSize::new());
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let scan = Command::new("HSCAN").arg(look.keys.claims().clone()).arg(cursor);
            let reply = look.ask(scan.arg("COUNT").number(size.of(COUNT))).await?;
            let [next, fields] = reply.into_parts().map_err(|shape| look.failed(shape))?;
            let fields = fields.into_strings().map_err(|shape| look.failed(shape))?;
            size.has_read(fields.iter().map(|field| &field[..]));
            for field in fields.chunks_exact(2) {
                let (id, copy) = (&field[0], &field[1]);
                if after.as_ref().is_none_or(|after| id > after)
                    && let Some(pop) = UnconfirmedPop::read(id, copy, clock)
                {
                    pops.insert(id.clone(), pop);
                    if pops.len() > max {
                        pops.pop_last();
                    }
                }
            }
            cursor = next.into_bytes().map_err(|shape| look.failed(shape))?;
            if cursor == "0" {
                return Ok(pops.into_values().collect());
            }
        }
    }
}
