//! The ids of jobs that are no longer pending: Redisson, which knows no ids, has moved or removed their
//! entries. The look for them also shows whether dead letters and their content agree.

use std::time::Duration;

use tokio::time::sleep;

use crate::agreement::Pair;
use crate::conn::{Conn, OpError};
use crate::scripts;
use crate::telemetry::events;
use crate::wire::keys::Keys;

/// How many fields one call looks at, about.
const FIELDS: u32 = 2000;

/// Removes them, in one pass. If it fails, the next look goes on. Other clients take part in the same pass.
pub(super) async fn remove(conn: Conn, keys: Keys) {
    let call = scripts::SWEEP_JOBS.of(&keys, None).number(FIELDS);
    let mut has_agreed = false;
    let mut step = async || -> Result<i64, OpError> {
        let [_removed, wait, disagree] = call.run(&conn).await?.into_parts()?;
        if disagree.into_int()? > 0 && !std::mem::replace(&mut has_agreed, true) {
            let _ = Pair::Dead.agree_or_report(&conn, &keys).await;
        }
        Ok(wait.into_int()?)
    };
    loop {
        match step().await {
            Ok(wait @ 0..) => {
                sleep(Duration::from_millis(wait.unsigned_abs()).mul_f64(1.0 + fastrand::f64() / 10.0)).await;
            }
            Ok(_) => break,
            Err(error) => {
                conn.counters().failed(format!("removal of stale ids of `{}`", events::name(&keys)), &error);
                break;
            }
        }
    }
}
