//! What the scripts do, so that the checks show why.

/// What the protocol does. Each is there for a reason, which the checks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocol {
    /// An offer looks for what holds its id when the job is not pending any more.
    pub looks_for_holders: bool,
    /// A transfer leaves ids that are held.
    pub transfers_leave_ids: bool,
    /// A claim notes which message holds the id.
    pub claims_move_ids: bool,
    /// A claim skips the notes of jobs that are pending.
    pub skips_pending: bool,
    /// What goes back to the ready list has its note and its id again.
    pub returns_hold: bool,
    /// A replacement removes what waits for a retry, or is dead.
    pub replacements_remove_messages: bool,
    /// A cancel of a job in flight is remembered until its delivery ends.
    pub remembers_cancels: bool,
    /// A sweep looks for the payload before it removes an id.
    pub sweeps_look_for_payloads: bool,
    /// A sweep looks for the dead letter before it removes an id.
    pub sweeps_look_for_letters: bool,
    /// A sweep removes ids whose messages are gone.
    pub sweeps_look_for_messages: bool,
    /// A sweep compares the notes of equal payloads with how many of these are ready.
    pub sweeps_count_payloads: bool,
    /// What redelay removes takes its note and its id with it.
    pub removals_forget: bool,
    /// A claim knows by the field that nothing travels with the pending entry.
    pub tells_plain_entries: bool,
    /// Keys have the times of the offers. Without them, there are fewer states.
    pub knows_offers: bool,
}

impl Protocol {
    /// As it is.
    pub const NOW: Self = Self {
        looks_for_holders: true,
        transfers_leave_ids: true,
        claims_move_ids: true,
        skips_pending: true,
        returns_hold: true,
        replacements_remove_messages: true,
        remembers_cancels: true,
        sweeps_look_for_payloads: true,
        sweeps_look_for_letters: true,
        sweeps_look_for_messages: true,
        sweeps_count_payloads: true,
        removals_forget: true,
        tells_plain_entries: true,
        knows_offers: false,
    };
}
