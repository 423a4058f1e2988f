//! Ctrl-C and SIGTERM for commands without a server: each further signal stops more of the work, and the last signal
//! ends the program.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Exit, Failure};
use crate::output;

/// Returns a flag that the first signal sets. The second signal ends the program.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let [raised] = flags(["stopping; press Ctrl-C again to stop at once"])?;
    Ok(raised)
}

/// Returns a flag for each text in `remarks`. Signal number N sets flag N and prints its text; the first signal after
/// the last flag ends the program.
pub fn flags<const N: usize>(remarks: [&'static str; N]) -> Result<[Arc<AtomicBool>; N], Failure> {
    let cannot = |error: std::io::Error| Failure::cannot("handle signals", error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let flags = remarks.map(|_| Arc::new(AtomicBool::new(false)));
    let raised = flags.clone();
    let entered = runtime.enter();
    let mut interrupted = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(cannot)?;
    drop(entered);
    let watch = move || {
        runtime.block_on(async {
            let mut next = raised.iter().zip(remarks);
            loop {
                let exit = tokio::select! {
                    _ = interrupted.recv() => Exit::Interrupted,
                    _ = terminated.recv() => Exit::Terminated,
                };
                let Some((flag, remark)) = next.next() else {
                    // When this process ends, the launchers end the agents.
                    process::exit(exit as i32);
                };
                flag.store(true, Ordering::Relaxed);
                output::note(remark);
            }
        });
    };
    thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(cannot)?;
    Ok(flags)
}
