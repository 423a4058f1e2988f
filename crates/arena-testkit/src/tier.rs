//! The tiers of tests: quick tests start no services.

/// The variable that `cargo xtask test` sets for quick tests.
const QUICK_ONLY: &str = "ARENA_TESTS_WITHOUT_SERVICES";

/// Checks that the test may start a service.
///
/// # Panics
/// If the test is a quick test.
#[track_caller]
pub(crate) fn need_service(name: &str) {
    assert!(
        std::env::var_os(QUICK_ONLY).is_none(),
        "a quick test needs {name}; move the test to a module `services`, which `cargo xtask test` skips"
    );
}
