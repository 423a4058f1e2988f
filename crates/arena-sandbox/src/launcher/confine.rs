//! The permanent restrictions of an agent: its user, its resource limits, and the rules for files and system
//! calls.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope as LandlockScope,
};
use nix::libc;
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getpid, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, set_capabilities, set_capabilities_secure_bits,
    set_no_new_privs,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use super::exposure::entries;
use super::{LaunchPlan, Setup};
use crate::process::{ActiveSandbox, Limits, StartError};

/// The newest Landlock version in use: all of its rights are requested. Older kernels enforce the rights they support.
const NEWEST_ABI: ABI = ABI::V9;

/// Files and folders of `/etc` that programs read at their start. None contains information on users or
/// services.
pub(super) const ETC: [&str; 10] = [
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "pki/tls/openssl.cnf",
    "ssl/openssl.cnf",
];

/// Devices that all programs may use.
pub(super) const DEVICES: [&str; 4] = ["/dev/null", "/dev/full", "/dev/random", "/dev/urandom"];

/// A device that agents may only read. Only Landlock can forbid writing, so without it the device is left
/// out.
pub(super) const ZERO: &str = "/dev/zero";

/// The processes and files that share the kernel's limits and permissions with the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Only the agent's processes and files, because the agent has its own namespaces.
    Namespace,
    /// All processes and files of the user that the agent runs as.
    User,
}

/// Changes permanently to the unprivileged user, if one is given.
pub(super) fn drop_to(id: Option<u32>) -> Result<(), StartError> {
    let Some(id) = id else { return Ok(()) };
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[]).setup("leaving all groups")?;
    setresgid(group, group, group).setup("changing the group")?;
    setresuid(user, user, user).setup("changing the user")?;
    // The change of user makes this process's `/proc` folder inaccessible, and the setup of the user
    // namespace needs that folder. Only the arena's own code runs at this point.
    set_dumpable_behavior(DumpableBehavior::Dumpable).setup("opening the process folder in /proc")
}

/// Drops root's capabilities permanently. This applies to containers in which root is the only user.
fn drop_rights_of_root() -> Result<(), StartError> {
    // Without these bits the kernel would give the capabilities back when root executes the agent's program.
    let no_root = CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED;
    set_capabilities_secure_bits(no_root).setup("giving up root's rights")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).setup("giving up root's rights")
}

/// Sets the agent's resource limits that the kernel enforces.
pub(super) fn limit(limits: &Limits, scope: Scope, in_force: &mut ActiveSandbox) -> Result<(), StartError> {
    let set = |resource, value: u64, name: &str| {
        // A lower hard limit stays: an unprivileged process can't raise it.
        let hard = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let value = value.min(hard);
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }).setup(name)
    };
    if let Some(bytes) = limits.memory_bytes {
        // The address space isn't limited, because interpreters reserve far more than they use.
        set(Resource::Data, bytes, "limiting memory")?;
    }
    if let Some(files) = limits.open_files {
        set(Resource::Nofile, files.into(), "limiting open files")?;
    }
    if let Some(bytes) = limits.file_size_bytes {
        set(Resource::Fsize, bytes, "limiting the size of files")?;
    }
    if let Some(processes) = limits.processes {
        let counted_alone = in_force.namespaces.iter().any(|kind| kind == "user");
        let places = match scope {
            // The init process counts too.
            Scope::Namespace if counted_alone => u64::from(processes) + 1,
            // All processes of the user count, so the limit leaves room for them. [`super::watch`] counts the
            // agent's own processes.
            _ => processes_of_user() + 4 * u64::from(processes),
        };
        set(Resource::Nproc, places, "limiting processes")?;
    }
    set(Resource::Core, 0, "switching off memory dumps")
}

/// Counts the visible processes and threads of this user.
fn processes_of_user() -> u64 {
    let user = geteuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit());
    let own = pids.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == user));
    own.map(|entry| fs::read_dir(entry.path().join("task")).map_or(1, |threads| threads.count() as u64)).sum()
}

/// Applies the rules on files, sockets, signals and system calls to this process and its descendants.
pub(super) fn by_rules(plan: &LaunchPlan, scope: Scope, in_force: &mut ActiveSandbox) -> Result<(), StartError> {
    if scope == Scope::User && geteuid().is_root() {
        drop_rights_of_root()?;
    }
    set_no_new_privs(true).setup("setting no_new_privs")?;
    let abi = by_landlock(plan, scope).map_err(|error| setup("setting up Landlock", &error))?;
    in_force.landlock_abi = abi;
    match (abi, scope) {
        (None, Scope::User) => {
            let lacks = "neither user namespaces nor Landlock are available".to_owned();
            return Err(StartError::NoSandbox { lacks });
        }
        (None, Scope::Namespace) => in_force.missing.push(
            "The kernel has no Landlock, so only the agent's namespaces restrict its access to files.".to_owned(),
        ),
        (Some(..=2), Scope::User) => in_force.missing.push(
            "The kernel's Landlock is older than version 3, so the agent could truncate files that its user may \
             write."
                .to_owned(),
        ),
        (Some(_), _) => {}
    }
    let signals_scoped = scope == Scope::Namespace || abi.is_some_and(|abi| abi >= 6);
    if !signals_scoped {
        in_force.missing.push(
            "The kernel's Landlock is older than version 6, so the agent may send signals only to itself, not to \
             its children."
                .to_owned(),
        );
    }
    for program in filters(scope, signals_scoped, plan.setup.is_some())
        .map_err(|error| setup("making the filter of system calls", &error))?
    {
        apply_filter(&program).map_err(|error| setup("filtering system calls", &error))?;
    }
    in_force.seccomp = true;
    Ok(())
}

fn setup(step: &str, error: &dyn std::fmt::Display) -> StartError {
    StartError::Setup { step: step.to_owned(), reason: error.to_string() }
}

/// Adds rules that allow reading a file or folder, except for its hidden parts. Landlock rules can only allow
/// access, so a folder with hidden entries is allowed entry by entry. Files created in it later stay
/// unreadable.
fn around_hidden(path: &Path, hidden: &[PathBuf], paths: &mut Vec<(PathBuf, BitFlags<AccessFs>)>) {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        paths.push((path.to_owned(), AccessFs::from_read(NEWEST_ABI)));
        return;
    }
    // The folder can be listed, including the names of hidden entries.
    paths.push((path.to_owned(), AccessFs::ReadDir.into()));
    around_hidden_in(fs::read_dir(path).into_iter().flatten().flatten(), hidden, paths);
}

fn around_hidden_in(
    entries: impl IntoIterator<Item = fs::DirEntry>,
    hidden: &[PathBuf],
    paths: &mut Vec<(PathBuf, BitFlags<AccessFs>)>,
) {
    // A rule for a link would apply to the link's target, wherever that is.
    for entry in entries.into_iter().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink())) {
        around_hidden(&entry.path(), hidden, paths);
    }
}

pub(super) fn has_landlock() -> bool {
    let needed = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    needed.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// Returns the Landlock version in force, or `None` if the kernel has no Landlock.
fn by_landlock(plan: &LaunchPlan, scope: Scope) -> Result<Option<u32>, landlock::RulesetError> {
    let all = AccessFs::from_all(NEWEST_ABI);
    let read = AccessFs::from_read(NEWEST_ABI);
    let mut paths: Vec<(PathBuf, BitFlags<AccessFs>)> = vec![(plan.scratch.clone(), all)];
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    paths.extend(DEVICES.map(|path| (path.into(), device)));
    // The device isn't writable: a writable mapping of it would be anonymous shared memory, which the system
    // call filter refuses.
    paths.push((ZERO.into(), AccessFs::ReadFile.into()));
    match scope {
        // The agent's root contains only its own files.
        Scope::Namespace => paths.extend([("/".into(), read), ("/tmp".into(), all)]),
        Scope::User => {
            // The path contains the process id, because `/proc/self` depends on the reading process.
            // Executing the agent keeps the process id.
            let own = format!("/proc/{}", getpid().as_raw_pid()).into();
            paths.extend(["/usr", "/bin", "/sbin"].map(|path| (path.into(), read)));
            paths.extend(ETC.map(|name| (Path::new("/etc").join(name), read)));
            paths.extend(top_level_libs().map(|path| (path, read)));
            for exposure in &plan.exposures {
                match exposure.is_own.then(|| entries(&exposure.at)).flatten() {
                    Some(entries) => {
                        paths.push((exposure.at.clone(), AccessFs::ReadDir.into()));
                        around_hidden_in(entries, &plan.hidden, &mut paths);
                    }
                    None => around_hidden(&exposure.at, &plan.hidden, &mut paths),
                }
            }
            paths.push((own, read));
        }
    }
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(NEWEST_ABI))?
        .scope(LandlockScope::from_all(NEWEST_ABI))?
        .create()?;
    if let Some(setup) = &plan.setup {
        rules = rules.add_rule(NetPort::new(setup.port, AccessNet::ConnectTcp))?;
    }
    for (path, access) in paths {
        // A missing path needs no rule, and the agent can't open a path that this process can't.
        let Ok(fd) = PathFd::new(&path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST_ABI) };
        rules = rules.add_rule(PathBeneath::new(fd, access))?;
    }
    let status = rules.restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Ok(None);
    }
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.and_then(|abi| abi.try_into().ok()).or(Some(effective_abi as u32))
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    })
}

/// Returns the top-level `lib*` folders, such as `/lib` and `/lib64`.
pub(super) fn top_level_libs() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"lib")).map(|entry| entry.path())
}

/// System calls that no agent needs and that affect other processes or parts of the kernel with many
/// vulnerabilities.
const REFUSED: &[libc::c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // The kernel's autogroups share the processor between sessions. An agent with further sessions would take
    // a part of its opponent's share.
    libc::SYS_setsid,
    // The match assigns cores and disk priority. An agent that left its core would have more CPU time than
    // its opponent and could slow down other matches. The calls also work on other processes of the same
    // user.
    libc::SYS_ioprio_set,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_setpriority,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The machine.
    libc::SYS_acct,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_perf_event_open,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    // Keys.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Memory that outlives processes.
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
    // A pipe can keep pages, huge ones included, that no process has mapped any more.
    libc::SYS_vmsplice,
];

/// System calls that change files in ways that Landlock can't restrict, or that create objects visible to all
/// processes. Without namespaces they would affect all files of the user, at least their metadata.
const BEYOND_LANDLOCK: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utimensat,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// The number of `fchmodat2`, which is the same on all architectures.
const SYS_FCHMODAT2: libc::c_long = 452;

/// System calls answered with `ENOSYS`, so that programs use an alternative. A filter can't see the flags of
/// `clone3`. Memory of `memfd_create` belongs to no process, so no limit counts it. `io_uring` performs calls
/// that bypass the filter. The kernel doesn't limit the number of Landlock rulesets.
const UNKNOWN: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
];

/// Flags of `clone` that create namespaces.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// The first system call number of x32, the second ABI of x86-64. The other filters list only the numbers of
/// the first ABI.
const X32_CALLS: u32 = 0x4000_0000;

/// Types of sockets other than streams.
const NO_STREAMS: [libc::c_int; 5] =
    [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP];

/// Returns the filters of system calls. Each call passes all filters; the strictest answer applies. With
/// `allows_tcp`, the agent may create sockets of TCP over IPv4, besides local sockets.
fn filters(scope: Scope, signals_scoped: bool, allows_tcp: bool) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|&call| (call, Vec::new())).collect();
    let mut clones = Vec::new();
    for flag in NEW_NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        clones.push(SeccompRule::new(vec![masked(0, flag, flag)?])?);
    }
    refused.insert(libc::SYS_clone, clones);
    // These requests insert input into a terminal.
    let ioctls = [libc::TIOCSTI, libc::TIOCLINUX];
    let ioctls = ioctls.map(|call| SeccompRule::new(vec![is(1, call)?]));
    refused.insert(libc::SYS_ioctl, ioctls.into_iter().collect::<Result<_, seccompiler::BackendError>>()?);
    // The first argument of `prlimit64` is a process id; 0 is the calling process.
    refused.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![differs(0, 0)?])?]);
    // Anonymous shared memory stays allocated after it is unmapped and then belongs to no process, so no
    // limit counts it. Shared files lie in the scratch folder, whose size is limited.
    let shared = u64::from((libc::MAP_SHARED | libc::MAP_ANONYMOUS).unsigned_abs());
    refused.insert(libc::SYS_mmap, vec![SeccompRule::new(vec![masked(3, shared, shared)?])?]);
    // Unread data in pipes and sockets is kernel memory, so their buffers keep the default size.
    let larger_pipe = u64::from(libc::F_SETPIPE_SZ.unsigned_abs());
    refused.insert(libc::SYS_fcntl, vec![SeccompRule::new(vec![is(1, larger_pipe)?])?]);
    let of_a_socket = u64::from(libc::SOL_SOCKET.unsigned_abs());
    let larger_buffers = [libc::SO_SNDBUF, libc::SO_RCVBUF]
        .map(|option| SeccompRule::new(vec![is(1, of_a_socket)?, is(2, u64::from(option.unsigned_abs()))?]));
    let larger_buffers = larger_buffers.into_iter().collect::<Result<_, seccompiler::BackendError>>()?;
    refused.insert(libc::SYS_setsockopt, larger_buffers);
    match scope {
        Scope::Namespace => drop(refused.insert(libc::SYS_socket, other_sockets(allows_tcp)?)),
        Scope::User => {
            refused.extend(BEYOND_LANDLOCK.iter().map(|&call| (call, Vec::new())));
            // A rule can't distinguish local sockets of others from the agent's own, so only connected pairs
            // are allowed. A datagram pair could be reconnected to another socket.
            refused.insert(libc::SYS_socket, Vec::new());
            refused.insert(libc::SYS_connect, Vec::new());
            let datagrams = u64::from(libc::SOCK_DGRAM.unsigned_abs());
            refused.insert(libc::SYS_socketpair, vec![SeccompRule::new(vec![masked(1, 0xf, datagrams)?])?]);
        }
    }
    if !signals_scoped {
        let own = u64::from(std::process::id());
        refused.insert(libc::SYS_kill, vec![SeccompRule::new(vec![differs(0, own)?])?]);
        refused.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![differs(0, own)?])?]);
        for call in
            [libc::SYS_tkill, libc::SYS_pidfd_send_signal, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo]
        {
            refused.insert(call, Vec::new());
        }
    }
    let unknown = UNKNOWN.iter().map(|&call| (call, Vec::new())).collect();
    let mut programs = vec![program(refused, libc::EPERM)?, program(unknown, libc::ENOSYS)?];
    if cfg!(target_arch = "x86_64") {
        programs.push(without_second_interface());
    }
    Ok(programs)
}

/// Returns the rules for sockets that aren't local and, with `allows_tcp`, not of TCP over IPv4.
fn other_sockets(allows_tcp: bool) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let [local, internet] = [libc::AF_UNIX, libc::AF_INET].map(|family| u64::from(family.unsigned_abs()));
    if !allows_tcp {
        return Ok(vec![SeccompRule::new(vec![differs(0, local)?])?]);
    }
    let mut rules = vec![SeccompRule::new(vec![differs(0, local)?, differs(0, internet)?])?];
    for kind in NO_STREAMS {
        let kind = masked(1, 0xf, u64::from(kind.unsigned_abs()))?;
        rules.push(SeccompRule::new(vec![is(0, internet)?, kind])?);
    }
    Ok(rules)
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn differs(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}

fn program(calls: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let answer = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(calls, SeccompAction::Allow, answer, arch)?.try_into()
}

/// Returns a filter that refuses all x32 system calls.
fn without_second_interface() -> BpfProgram {
    let step = |code: u32, jt: u8, k: u32| sock_filter { code: code as u16, jt, jf: 0, k };
    vec![
        // The filter's input begins with the number of the call.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, X32_CALLS),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_can_be_made_for_each_kind_of_kernel() {
        for scope in [Scope::Namespace, Scope::User] {
            for signals_scoped in [true, false] {
                for allows_tcp in [true, false] {
                    let programs = filters(scope, signals_scoped, allows_tcp).unwrap();
                    assert!(programs.iter().all(|program| (4..1000).contains(&program.len())));
                }
            }
        }
    }
}
