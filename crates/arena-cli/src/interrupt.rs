//! Ctrl-C and SIGTERM for verbs that run no server: each signal ends more than the one before, and the last the program.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Exit, Failure};
use crate::output;

/// A flag that the first signal raises; the second ends the program.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let [raised] = flags(["stopping; once more to stop at once"])?;
    Ok(raised)
}

/// A flag for each of the first signals, and the remark with which it is raised. The signal behind them ends the program at once.
pub fn flags<const N: usize>(remarks: [&'static str; N]) -> Result<[Arc<AtomicBool>; N], Failure> {
    let cannot = |error: std::io::Error| Failure::new(Exit::Internal, format_args!("can't handle signals: {error}"));
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
                    // Agents end with this process: their launchers see to that.
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
