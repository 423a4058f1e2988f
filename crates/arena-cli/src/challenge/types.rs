//! x
pub fn run(_: &std::path::Path, _: crate::output::Style) -> Result<(), crate::exit::Failure> {
    Ok(())
}
