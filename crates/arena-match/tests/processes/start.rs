//! Programs that start, and the error messages for programs that don't.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use arena_match::process::{ExitCause, SandboxMode, start, try_sandbox};

use crate::agent::{Agent, CONFINED, MODES, PYTHON, launcher, read_line, read_to_end};

#[test]
fn an_agent_reads_writes_and_exits_in_every_mode() {
    for mode in MODES {
        let agent = Agent::python(mode, "print(sys.stdin.readline().strip()[::-1]); print('aside', file=sys.stderr)");
        let run = agent.run("abc\n");
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("cba\n", "aside\n"), "{mode:?}");
        assert_eq!(run.ended.cause, ExitCause::Exited(0), "{mode:?}");
        assert!(run.ended.cpu_time_us > 0 && run.ended.max_rss_bytes > 1 << 20, "{mode:?}: {run:?}");
        println!("{mode:?}: {:?}", agent.start().in_force().unwrap());
    }
}

#[test]
fn a_first_line_that_env_splits_may_end_in_cr() {
    let agent = Agent::with_text(SandboxMode::On, "#!/usr/bin/env -S python3 -u\r\nprint(1)\r\n");
    assert_eq!(agent.run("").stdout, "1\n");
}

#[test]
fn a_program_that_cannot_be_run_is_named_with_the_reason() {
    for mode in MODES {
        let agent = Agent::with_text(mode, "#!/bin/sh\n");
        let folder = agent.spec.folder.clone();
        let check = |program: PathBuf, text: Option<&str>, mode_bits: u32, expected: &str| {
            if let Some(text) = text {
                fs::write(&program, text).unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(mode_bits)).unwrap();
            }
            let mut other = Agent::with_text(mode, "");
            other.spec = agent.spec.clone();
            other.spec.program = program.clone();
            let actual = other.start_error().to_string();
            assert_eq!(actual, expected.replace('%', &program.display().to_string()), "{mode:?}");
        };
        check(folder.join("nothing"), None, 0, "there is no program %");
        check("no-such-program-anywhere".into(), None, 0, "there is no program %");
        check(folder.clone(), None, 0, "% is not a file, so it cannot be run as a program");
        check(folder.join("plain"), Some("#!/bin/sh\n"), 0o644, "% is not executable (run `chmod +x %`)");
        let carriage_return = "% cannot be run: its first line ends with CR LF, and the CR becomes a part of the \
                               interpreter's name; save it with line ends LF";
        let neither = "% is neither a binary for this machine nor a script that begins with `#!`";
        for (text, expected) in [
            ("#!/no/such/thing -x\n", "% needs the interpreter /no/such/thing, which doesn't exist"),
            ("#!/usr/bin/env no-such-thing\n", "% needs the interpreter no-such-thing, which doesn't exist"),
            ("just words\n", neither),
            (
                "\u{feff}#!/usr/bin/python3\n",
                "% cannot be run: it begins with a byte order mark, which hides its `#!`; save it as UTF-8 without the mark",
            ),
            ("#!/usr/bin/python3\r\nprint(1)\r\n", carriage_return),
            ("#!/usr/bin/env python3\r\nprint(1)\r\n", carriage_return),
            ("\u{7f}ELF and nothing else\n", neither),
        ] {
            check(folder.join("script"), Some(text), 0o755, expected);
        }
    }
}

#[test]
fn what_root_alone_can_read_is_named_with_the_way_to_mend_it() {
    if Agent::python(SandboxMode::On, "").run("").in_force.user_id != 65534 {
        println!("not checked: an unreadable folder of root's, since agents run as the user who runs this");
        return;
    }
    for mode in CONFINED {
        let agent = Agent::python(mode, "");
        fs::set_permissions(&agent.spec.folder, fs::Permissions::from_mode(0o700)).unwrap();
        let actual = agent.start_error().to_string();
        assert!(actual.contains("cannot be read by the unprivileged user 65534"), "{mode:?}: {actual}");
        assert!(actual.contains("chmod -R o+rX"), "{mode:?}: {actual}");
    }
}

#[test]
fn an_interpreter_that_env_finds_works_wherever_it_is_installed() {
    let agent =
        Agent::with_text(SandboxMode::On, "#!/usr/bin/env python3\nimport json, sys\nprint(sys.version_info[0])\n");
    let run = agent.run("");
    assert_eq!(run.stdout, "3\n", "{run:?}");
}

#[test]
fn node_runs_within_the_default_limits() {
    if !std::path::Path::new("/usr/bin/node").exists() {
        println!("not checked: node, which isn't installed as /usr/bin/node");
        return;
    }
    for mode in MODES {
        let text = "#!/usr/bin/node\nprocess.stdin.on('data', d => { console.log(d.toString().trim().length); });\n";
        let run = Agent::with_text(mode, text).run("four\n");
        assert_eq!((run.stdout.as_str(), &run.ended.cause), ("4\n", &ExitCause::Exited(0)), "{mode:?}: {run:?}");
    }
}

#[test]
fn threads_of_node_share_memory() {
    if !std::path::Path::new("/usr/bin/node").exists() {
        println!("not checked: node, which isn't installed as /usr/bin/node");
        return;
    }
    let text = r#"#!/usr/bin/node
const { Worker } = require('worker_threads');
const shared = new Int32Array(new SharedArrayBuffer(1 << 20));
const wasm = new WebAssembly.Memory({ initial: 1, maximum: 16, shared: true });
const worker = new Worker("require('worker_threads').workerData[0] = 7", { eval: true, workerData: shared });
worker.on('exit', () => console.log(shared[0], wasm.buffer.byteLength));
"#;
    for mode in MODES {
        let run = Agent::with_text(mode, text).run("");
        assert_eq!((run.stdout.as_str(), &run.ended.cause), ("7 65536\n", &ExitCause::Exited(0)), "{mode:?}: {run:?}");
    }
}

#[test]
fn modules_beside_the_program_can_be_imported_and_a_bare_name_is_looked_up() {
    for mode in MODES {
        let mut agent = Agent::python(mode, "import helper; print(helper.WORD)");
        fs::write(agent.spec.folder.join("helper.py"), "WORD = 'helped'\n").unwrap();
        assert_eq!(agent.run("").stdout, "helped\n", "{mode:?}");
        let script = agent.spec.program.display().to_string();
        agent = agent.args(&[&script]);
        agent.spec.program = "python3".into();
        agent.spec.env.push(("PATH".into(), PathBuf::from(PYTHON).parent().unwrap().into()));
        assert_eq!(agent.run("").stdout, "helped\n", "{mode:?}");
    }
}

#[test]
fn what_the_user_exposes_can_be_read_and_what_is_everybodys_own_cannot_be_exposed() {
    for mode in CONFINED {
        let mut agent = Agent::python(mode, "print(open(sys.argv[1]).read(), os.path.isdir(sys.argv[2]))");
        let model = tempfile::tempdir().unwrap();
        fs::set_permissions(model.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(model.path().join("weights"), "heavy").unwrap();
        let (file, folder) = (model.path().join("weights"), model.path().to_owned());
        agent = agent.args(&[&file.display().to_string(), &folder.display().to_string()]);
        agent.spec.expose = vec![folder];
        assert_eq!(agent.run("").stdout, "heavy True\n", "{mode:?}");
        agent.spec.expose = vec!["/proc".into()];
        let actual = agent.start_error().to_string();
        assert_eq!(
            actual,
            "the agent cannot be started with these settings: /proc cannot be exposed, because every agent has its own",
            "{mode:?}"
        );
    }
}

#[test]
fn an_interpreter_in_a_folder_that_is_closed_to_others_still_works_with_namespaces() {
    let home = tempfile::tempdir().unwrap();
    // Closed to other users, like a home folder.
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let bin = home.path().join("tools/bin");
    fs::create_dir_all(&bin).unwrap();
    let interpreter = bin.join("interpret");
    fs::write(&interpreter, "#!/bin/sh\necho interpreted\n").unwrap();
    fs::set_permissions(&interpreter, fs::Permissions::from_mode(0o755)).unwrap();
    let first_line = format!("#!{}\n", interpreter.display());
    let agent = Agent::with_text(SandboxMode::On, &first_line);
    if agent.start().in_force().unwrap().namespaces.is_empty() {
        println!("not checked: a closed home, since this system allows no namespaces");
        return;
    }
    assert_eq!(agent.run("").stdout, "interpreted\n");
    let agent = Agent::with_text(SandboxMode::NoNamespaces, &first_line);
    match start(&launcher(), &agent.spec).unwrap().in_force() {
        Ok(in_force) => assert_ne!(in_force.user_id, 65534),
        Err(error) => assert!(error.to_string().contains("cannot be read by the unprivileged user"), "{error}"),
    }
}

#[test]
fn several_agents_start_at_the_same_time_and_none_holds_anothers_pipes() {
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                for mode in MODES.into_iter().cycle().take(12) {
                    let agent = Agent::with_text(mode, "#!/bin/sh\nread line\necho $line\nsleep 1000\n");
                    let mut both = [start(&launcher(), &agent.spec).unwrap(), start(&launcher(), &agent.spec).unwrap()];
                    for process in &mut both {
                        process.in_force().unwrap_or_else(|error| panic!("{mode:?}: {error}"));
                        // `read` ends when the only writer is closed.
                        drop(process.stdin.take());
                        assert_eq!(read_line(&process.stdout), "", "{mode:?}");
                    }
                    let outputs = both.each_ref().map(|process| process.stdout.try_clone().unwrap());
                    let [first, second] = both;
                    first.wait(Duration::ZERO);
                    assert_eq!(read_to_end(&outputs[0]), "", "{mode:?}");
                    second.wait(Duration::ZERO);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn where_namespaces_are_required_nothing_less_will_do() {
    let namespaces = Agent::python(SandboxMode::On, "").start().in_force().unwrap().namespaces.clone();
    match try_sandbox(&launcher()) {
        Ok(in_force) => {
            assert!(in_force.seccomp);
            assert_eq!(in_force.namespaces, namespaces);
        }
        Err(error) => {
            assert!(namespaces.is_empty(), "{error}");
            assert!(error.to_string().contains("it doesn't allow namespaces for agents ("), "{error}");
        }
    }
}
