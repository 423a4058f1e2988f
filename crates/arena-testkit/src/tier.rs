//! The tier of a test: quick tests start no services.

/// Variable that `cargo xtask test` sets for quick tests.
const QUICK_ONLY: &str = "ARENA_TESTS_WITHOUT_SERVICES";

/// Called before a service is started.
///
/// # Panics
/// In a quick test.
#[track_caller]
pub(crate) fn need_service(name: &str) {
    assert!(
        std::env::var_os(QUICK_ONLY).is_none(),
        "a quick test needs {name}: move it to a module `services`, so that `cargo xtask test` leaves it out"
    );
}
