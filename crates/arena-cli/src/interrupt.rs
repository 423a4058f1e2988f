//! Ctrl-C and SIGTERM for verbs that run no server: the first calls off what is under way, the second ends the program at once.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Exit, Failure};
use crate::output;

/// A flag that the first signal raises.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let cannot = |error: std::io::Error| Failure::new(Exit::Internal, format_args!("can't handle signals: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let raised = Arc::new(AtomicBool::new(false));
    let flag = raised.clone();
    let entered = runtime.enter();
    let mut interrupted = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(cannot)?;
    drop(entered);
    let watch = move || {
        runtime.block_on(async {
            loop {
                let exit = tokio::select! {
                    _ = interrupted.recv() => Exit::Interrupted,
                    _ = terminated.recv() => Exit::Terminated,
                };
                if flag.swap(true, Ordering::Relaxed) {
                    // Agents end with this process: their launchers see to that.
                    process::exit(exit as i32);
                }
                output::note("stopping; once more to stop at once");
            }
        });
    };
    thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(cannot)?;
    Ok(raised)
}
