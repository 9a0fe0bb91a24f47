//! Pops that lose nothing with a lost reply: the server keeps a copy of what each took, its *claim*, until
//! the client has confirmed the reply.
//!
//! | if … | then … |
//! |---|---|
//! | the reply is lost | the pop is sent again with its id, and gets what the first try took |
//! | … and the server refuses the second try | it is sent again for about ten seconds; then the caller gets the refusal, and what the first try took stays a claim |
//! | the confirmation is lost | it is sent again |
//! | … or refused | it is sent again for about ten seconds |
//! | the process dies before it has confirmed | the claim stays for a week: see [`UnconfirmedPops`](crate::admin::UnconfirmedPops) |

use bytes::Bytes;
use tokio::time::sleep;

use crate::conn::{Command, Conn, OpError, Reply};
use crate::pacing::pause_after;
use crate::scripts::Call;
use crate::wire::id;
use crate::wire::keys::Keys;

/// How long the claims of a queue stay after its last pop.
pub(crate) const KEPT_MS: u32 = 7 * 24 * 3_600_000;

/// The most claims that one command confirms.
const MOST: usize = 100;

/// How often a refused call is repeated, because the missing permission may be granted soon: for about ten
/// seconds.
const REFUSALS: u32 = 16;

/// The id of a pop, and of the copy of what it took.
pub(crate) type ClaimId = Bytes;

/// A new id, for one pop and all its tries.
pub(crate) fn new_id() -> ClaimId {
    id::text()
}

/// Runs a pop until the server has answered, however long that takes. It fails for lack of a connection only
/// if the pop has certainly not been executed.
///
/// The first try has the time of `conn`, which may be that of a caller in a hurry. The reply may have been
/// too long for the link, so from the second try on it has more: `own` has the timeout of the client.
pub(crate) async fn run_until_answered(pop: Call, conn: &Conn, own: &Conn) -> Result<Reply, OpError> {
    let (mut attempts, mut refusals) = (0, 0);
    let patient = own.for_long_reply();
    loop {
        match pop.run(if attempts > 0 { &patient } else { conn }).await {
            Err(OpError::Unknown(_)) => {}
            Err(OpError::NotExecuted(_)) if attempts > 0 => {}
            // The first try may have taken payloads, and no other call asks for them.
            Err(OpError::Server(_)) if attempts > 0 && refusals < REFUSALS => refusals += 1,
            result => return result,
        }
        sleep(pause_after(attempts)).await;
        attempts += 1;
    }
}

/// Deletes claims whose payloads have arrived. Retries until that is done: a claim that stays looks like a
/// loss.
pub(crate) async fn confirm(conn: &Conn, keys: &Keys, ids: Vec<ClaimId>) {
    for ids in ids.chunks(MOST) {
        for attempt in 0.. {
            let command = Command::new("HDEL").arg(keys.claims().clone()).args(ids.iter().cloned());
            match conn.call(&command.idempotent()).await {
                Err(OpError::Unknown(_) | OpError::NotExecuted(_)) => sleep(pause_after(attempt)).await,
                Err(OpError::Server(_)) if attempt < REFUSALS => sleep(pause_after(attempt)).await,
                _ => break,
            }
        }
    }
}
