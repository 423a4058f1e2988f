//! x
pub fn run(_: &crate::args::NewArgs, _: crate::output::Style) -> Result<(), crate::exit::Failure> {
    Ok(())
}
