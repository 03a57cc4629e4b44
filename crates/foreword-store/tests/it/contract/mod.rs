//! What every backend does, whatever it keeps the library in.
//!
//! A backend gives a factory: each call opens the same place once more, as another process would. `contract!` makes one
//! test of each fact.

mod edits;
mod store;

pub(crate) use edits::*;
pub(crate) use store::*;

/// Runs the contract on the backend that `$backend` makes a fresh factory of.
macro_rules! contract {
    ($backend:expr) => {
        $crate::contract::contract!(@ $backend;
            a_new_store_has_the_built_in_library
            an_edit_is_seen_in_the_snapshot_it_returns_and_not_in_older_ones
            an_edit_outlives_the_store
            the_text_of_a_snapshot_is_its_library
            an_edit_that_changes_nothing_publishes_nothing
            a_refused_edit_changes_nothing
            a_check_sees_the_library_that_the_edit_meets
            edits_at_once_all_land
            edits_through_two_handles_all_land
            a_cancelled_edit_is_finished_or_not_begun
            undo_walks_back_and_a_new_edit_starts_anew
            a_fresh_store_has_nothing_to_undo
            undo_reaches_as_far_back_as_the_history
            an_import_replaces_the_whole_library
            a_dry_run_says_what_would_change_and_writes_nothing
            an_import_of_what_is_there_writes_nothing
            an_import_with_mistakes_is_refused_with_all_of_them
            changes_are_told_in_order_and_remembered
            only_the_last_changes_are_remembered
            fault_35_replacing_a_profile_by_what_is_shown_of_it_changes_nothing
            fault_39_a_wrong_type_is_refused_before_it_is_stored
            a_profile_is_created_once
            a_deleted_profile_is_gone_unless_it_is_the_default
            the_last_profile_can_go
            one_profile_is_the_default
            the_default_mark_is_not_simply_dropped
            a_section_is_created_replaced_and_deleted
            a_section_in_use_is_not_deleted
            a_shared_text_is_not_changed_through_a_place
            a_place_without_text_or_shared_section_is_refused
            a_new_place_comes_last_of_those_written_out
            a_switch_moves_an_entry_out_of_the_short_form
            an_order_moves_an_entry_out_of_the_short_form_and_nothing_else
            removing_a_place_leaves_the_short_form
            ordering_names_every_section_once
            patching_an_inline_section_changes_only_what_is_given
            texts_are_set_and_what_is_absent_stays
            an_unknown_id_names_the_nearest
        );
    };
    (@ $backend:expr; $($fact:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $fact() {
                $crate::contract::$fact($backend).await;
            }
        )*
    };
}
pub(crate) use contract;
