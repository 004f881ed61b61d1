//! The suite that every store runs: the operations table of `docs/rounds.md`, row by row, on a real store.
//!
//! A store's tests implement [`Subject`] and write `sayso_store::conformance!(TheirSubject);`, which expands to one test
//! a case. Nothing here knows how a store keeps anything.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a case of a test suite fails by panicking"
)]

mod bench;
mod chain;
mod claiming;
mod collecting;
mod creating;
mod credentials;
mod delivering;
mod executions;
mod failing;
mod grants;
mod reading;
mod renewing;
mod reviewing;
mod submitting;
mod units;

use std::sync::Arc;

use crate::Store;
use crate::clock::ManualClock;

pub use bench::START;

/// A store to be tried.
pub trait Subject: Send + Sync + Sized + 'static {
    /// A new, empty store whose clock stands at [`START`].
    fn fresh() -> impl Future<Output = Self> + Send;
    /// The store.
    fn store(&self) -> Arc<dyn Store>;
    /// The clock that decides its leases and deadlines.
    fn clock(&self) -> &ManualClock;
    /// A second store object on the same data and clock, as another process would have.
    fn reopen(&self) -> impl Future<Output = Arc<dyn Store>> + Send;
}

/// Expands to one `#[tokio::test]` a case for the given [`Subject`](crate::conformance::Subject).
#[macro_export]
macro_rules! conformance {
    ($subject:ty) => { $crate::conformance! { @cases tests [$subject] } };
    (@cases $into:ident [$($subject:ty)?]) => { $crate::conformance! { @$into [$($subject)?]
        creating {
            a_stored_round_reads_back_as_it_was_asked
            a_live_round_needs_an_owner_and_a_resumable_one_takes_none
            a_deadline_must_lie_in_the_future
            rounds_of_one_operation_are_numbered_up_to_their_limit
            one_operation_keeps_its_server_kind_and_name
            creating_again_under_a_key_returns_the_same_round
            only_a_running_execution_of_the_same_principal_asks_more
            a_record_stands_where_its_creator_puts_it_and_keeps_what_is_beside_it
            a_record_is_stored_once_and_its_place_is_taken
        }
        submitting {
            one_answer_wins_and_the_others_are_told_who
            the_key_is_compared_before_the_payload_and_in_every_later_state
            a_failed_round_takes_no_answer_and_says_why
            a_deadline_counts_to_its_last_millisecond
            a_live_round_is_answered_only_while_its_owner_lives
            a_digest_must_be_that_of_what_is_pending
            approving_from_a_surface_needs_the_digest_of_what_was_shown
            a_refused_answer_leaves_an_event_and_nothing_else
            a_payload_that_does_not_fit_is_reported_last
            of_fifty_answers_at_once_one_wins
        }
        delivering {
            a_live_answer_is_handed_over_confirmed_and_resolved
            a_claimed_answer_is_handed_over_confirmed_and_resolved
            a_step_repeated_at_its_target_returns_the_record
            a_step_out_of_order_is_a_state_error
            an_expired_or_foreign_fence_moves_nothing
            an_owner_renews_late_as_long_as_nobody_took_over
        }
        renewing {
            a_holder_whose_token_nobody_replaced_renews_late_wherever_its_round_stands
            a_holder_that_was_replaced_renews_nothing_of_what_it_lost
            a_holder_that_renewed_late_is_not_replaced_while_that_holds
            a_finished_round_is_renewed_by_nobody
        }
        claiming {
            a_live_round_is_never_claimed
            a_resumable_round_is_claimed_once_answered
            an_expired_claim_is_taken_over_and_the_old_token_fenced_off
            a_started_delivery_is_repeated_only_with_evidence
            a_finished_round_is_never_handed_out
        }
        failing {
            its_holder_fails_a_round_with_a_reason
            whoever_asked_takes_a_resumable_question_back
            a_question_that_only_its_asker_drops_yields_to_an_answer_that_came_first
            a_round_whose_holder_is_gone_fails_as_unrecoverable
            a_resumable_round_is_unrecoverable_only_once_claimed
            a_pending_round_expires_and_an_accepted_answer_never_does
        }
        collecting {
            collecting_is_claim_start_delivered_and_resolved_at_once
            the_same_key_reads_the_same_answer_again
            what_is_pending_held_live_or_failed_is_not_collected
        }
        executions {
            a_result_is_stored_once
            an_execution_started_for_a_round_ends_with_it
            an_execution_that_suspends_leaves_its_worker_and_ends_with_its_last_round
            cancelling_fails_what_is_pending_and_repeats
            an_orphan_is_lost_unless_its_worker_lives_or_its_rounds_decide
            pending_rounds_are_counted_and_listed
        }
        credentials {
            a_token_is_found_by_its_hash_until_it_is_revoked
            revoking_a_credential_ends_the_sessions_that_began_with_it
            a_login_link_becomes_one_session
        }
        grants {
            a_grant_is_kept_as_it_was_given
            only_a_person_grants_and_only_what_can_be_read
            whoever_started_a_call_does_not_grant_it_where_a_second_person_is_needed
            a_use_is_counted_and_recorded_until_none_is_left
            a_revoked_grant_covers_nothing_and_is_still_listed
            of_many_uses_at_once_a_grant_for_one_call_covers_one
            grants_are_listed_by_session_newest_first_and_paged
        }
        reviewing {
            the_last_definition_that_was_reviewed_is_kept
            what_one_agent_reviewed_is_nothing_to_another
            a_review_is_stored_with_its_unit_or_not_at_all
        }
        units {
            a_unit_is_stored_whole_or_not_at_all
            a_unit_sees_its_own_earlier_commands
            a_refusal_in_a_unit_does_not_touch_its_neighbours
            many_units_at_once_are_each_counted
        }
        chain {
            events_are_numbered_without_gaps_and_linked_by_hash
            an_event_names_who_did_it_and_never_what_was_typed
            what_a_policy_decides_alone_is_an_event_of_its_own
            the_opaque_state_is_handed_over_byte_for_byte_and_erased_at_the_end
        }
        reading {
            a_reopened_store_reads_everything
            a_second_store_object_sees_what_the_first_commits
            rounds_are_paged_newest_first_and_filtered
            lists_are_ordered_by_id_whenever_and_in_whatever_state_a_row_was_stored
            late_rounds_are_found_by_their_operation_until_they_are_finished
            executions_are_paged_newest_first_and_filtered
            what_is_overdue_is_found_earliest_first
            what_died_with_its_worker_is_found
            the_last_wait_of_a_server_is_that_of_its_last_withdrawal
        }
    } };
    (@tests [$subject:ty] $($group:ident { $($case:ident)* })*) => { $(
        mod $group {
            #[allow(unused_imports, reason = "the subject may be named by its path")]
            use super::*;
            $(
                #[tokio::test]
                async fn $case() {
                    $crate::conformance::cases::$group::$case::<$subject>().await;
                }
            )*
        }
    )* };
    (@functions [] $($group:ident { $($case:ident)* })*) => {
        /// The cases by group, for [`conformance!`](crate::conformance!) alone.
        #[allow(missing_docs, reason = "each is named after the behaviour that it protects")]
        pub mod cases {
            $(pub mod $group {
                $(pub async fn $case<S: $crate::conformance::Subject>() {
                    $crate::conformance::$group::$case(&$crate::conformance::bench::Bench::<S>::new().await).await;
                })*
            })*
        }
    };
}

crate::conformance! { @cases functions [] }
