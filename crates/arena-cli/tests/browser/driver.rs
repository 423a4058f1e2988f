//! A browser that tests drive: Chromium without a screen, through its driver, by the standard protocol of WebDriver.
//!
//! The protocol is JSON over HTTP, and little of it is needed. Of the libraries for it, one turns on `preserve_order` of `serde_json`,
//! which in a workspace changes the binary under test, and the other stands on a licence that isn't ours.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustix::process::geteuid;
use serde_json::{Value, json};
use ureq::Agent;

/// Longest time that a page may take to do what it is waited for. Far more than it does: build machines are slow and busy.
const PATIENCE: Duration = Duration::from_secs(40);

/// Time between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(25);

/// The name under which an answer of WebDriver refers to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// What a page is watched for from its first moment: texts of strangers that became code would set it.
const WATCH: &str = "window.harmed = []; for (const name of ['alert', 'confirm', 'prompt']) window[name] = () => window.harmed.push(name);
     addEventListener('securitypolicyviolation', (event) => window.harmed.push(`${event.violatedDirective}: ${event.blockedURI}`));";

/// The driver, and all browsers that it has started. All of it ends when this is dropped.
pub struct Driver {
    process: Child,
    agent: Agent,
    url: String,
    folder: tempfile::TempDir,
    windows: Cell<u32>,
}

impl Driver {
    /// Starts the driver on a free port.
    pub fn start() -> Driver {
        let folder = tempfile::tempdir().unwrap();
        // It takes a port that is free for one family of addresses, and ends if somebody has it for the other one.
        let (process, port) = (0..5).find_map(|_| Driver::try_start(folder.path())).expect("the driver says its port");
        let settings = Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = settings.timeout_global(Some(PATIENCE)).build().new_agent();
        let url = format!("http://127.0.0.1:{port}/session");
        Driver { process, agent, url, folder, windows: Cell::new(0) }
    }

    /// The driver and its port; nothing if it ends before it says that.
    fn try_start(folder: &Path) -> Option<(Child, u16)> {
        let mut command = Command::new("chromedriver");
        command.args(["--port=0"]).env("TMPDIR", folder).env("HOME", folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let spawned = command.spawn();
        let mut process = spawned.unwrap_or_else(|error| {
            panic!("this test needs Chromium and chromedriver ({error}): run `cargo xtask setup browser` first")
        });
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.find_map(|line| Some(line.split_once("started successfully on port ")?.1.to_owned()));
        let Some(port) = said else {
            process.wait().unwrap();
            return None;
        };
        // What it says later must not fill the pipe.
        thread::spawn(move || lines.for_each(drop));
        Some((process, port.trim_end_matches('.').parse().unwrap()))
    }

    /// A browser of its own: no other window shares its storage.
    pub fn window(&self) -> Window<'_> {
        let number = self.windows.replace(self.windows.get() + 1);
        let profile = self.folder.path().join(format!("profile-{number}"));
        fs::create_dir(&profile).unwrap();
        let mut args = vec![
            "--headless=new".to_owned(),
            format!("--user-data-dir={}", profile.display()),
            "--window-size=1280,900".to_owned(),
            "--lang=en".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--hide-scrollbars".to_owned(),
        ];
        args.extend(
            ["--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-sync"]
                .map(str::to_owned),
        );
        if geteuid().is_root() {
            // Its own sandbox doesn't run as root. The pages are ours, and what they load is too.
            args.push("--no-sandbox".to_owned());
        }
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": args },
            "goog:loggingPrefs": { "browser": "ALL" },
            // Clicks and page loads end when what they do is done; a page with a stream never ends loading more.
            "pageLoadStrategy": "normal",
        } } });
        let told = self.post("", &wanted).unwrap_or_else(|error| panic!("no browser: {error:?}"));
        let session = told["sessionId"].as_str().expect("a session has an id").to_owned();
        let window = Window { driver: self, session, excused: RefCell::new(Vec::new()) };
        window.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": WATCH }));
        window
    }

    /// Asks the driver for something, at a path below its sessions.
    fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        let failed = |error: ureq::Error| Refusal { error: "no answer".to_owned(), message: error.to_string() };
        let mut answer = self.agent.post(format!("{}{path}", self.url)).send_json(body).map_err(failed)?;
        let mut told: Value = answer.body_mut().with_config().limit(64 << 20).read_json().map_err(failed)?;
        let value = told["value"].take();
        if answer.status() == 200 {
            return Ok(value);
        }
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        Err(Refusal { error: text("error"), message: text("message") })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Windows have ended their browsers, unless a test was broken off; it may have ended itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the driver refuses: a word of the standard's, and a sentence.
#[derive(Debug)]
struct Refusal {
    error: String,
    message: String,
}

impl Refusal {
    /// Whether it may go away by itself: the page is being loaded, or its element covered or not there yet.
    fn may_pass(&self) -> bool {
        let passing = [
            "no such element",
            "stale element reference",
            "element click intercepted",
            "element not interactable",
            "detached shadow root",
        ];
        passing.contains(&self.error.as_str())
            || self.message.contains("execution context")
            || self.message.contains("inspected target navigated")
            // What a wait asks about isn't there yet.
            || (self.error == "javascript error" && ["of null", "of undefined"].iter().any(|what| self.message.contains(what)))
    }
}

/// A browser with one window. What its console complained of must be taken, or it fails the test.
pub struct Window<'d> {
    driver: &'d Driver,
    session: String,
    /// Parts of complaints that are expected.
    excused: RefCell<Vec<String>>,
}

impl Window<'_> {
    fn try_post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        self.driver.post(&format!("/{}/{path}", self.session), body)
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.try_post(path, body).unwrap_or_else(|refusal| panic!("{path}: {refusal:?}\n{}", self.state()))
    }

    /// A command of Chromium's own protocol.
    #[track_caller]
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// Loads a page.
    #[track_caller]
    pub fn open(&self, url: &str) {
        self.post("url", &json!({ "url": url }));
    }

    /// Loads the page again.
    #[track_caller]
    pub fn reload(&self) {
        self.post("refresh", &json!({}));
    }

    /// Runs a script, which returns something.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs a script that calls its last argument with what comes of it.
    #[track_caller]
    pub fn run_slowly(&self, script: &str, arguments: &[Value]) -> Value {
        self.post("execute/async", &json!({ "script": script, "args": arguments }))
    }

    /// Tries again and again, as long as what stands in the way may pass.
    #[track_caller]
    fn patiently<T>(&self, what: &str, mut attempt: impl FnMut() -> Result<Option<T>, Refusal>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            let last = match attempt() {
                Ok(Some(found)) => return found,
                Ok(None) => String::new(),
                Err(refusal) if refusal.may_pass() => format!("{refusal:?}"),
                Err(refusal) => panic!("{what}: {refusal:?}\n{}", self.state()),
            };
            assert!(Instant::now() < until, "waited in vain for {what} {last}\n{}", self.state());
            // The protocol has no waiting for a condition, so this looks again and again.
            thread::sleep(LOOK);
        }
    }

    /// Waits until an expression of the page is true, and gives its value.
    #[track_caller]
    pub fn wait(&self, expression: &str) -> Value {
        let body = json!({ "script": format!("return {expression}"), "args": [] });
        self.patiently(expression, || {
            let value = self.try_post("execute/sync", &body)?;
            let is_true =
                !matches!(&value, Value::Null | Value::Bool(false)) && value != json!(0) && value != json!("");
            Ok(is_true.then_some(value))
        })
    }

    /// Waits until a text stands in what people see of the page.
    #[track_caller]
    pub fn see(&self, text: &str) {
        self.wait(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Whether a text stands in what people see of the page.
    #[track_caller]
    pub fn sees(&self, text: &str) -> bool {
        self.text("body").contains(text)
    }

    /// What people see of the first element that a selector finds.
    #[track_caller]
    pub fn text(&self, selector: &str) -> String {
        let found = format!("document.querySelector({})?.innerText", json!(selector));
        self.run(&format!("return {found} ?? ''")).as_str().unwrap_or_default().to_owned()
    }

    fn find(&self, selector: &str) -> Result<String, Refusal> {
        let found = self.try_post("element", &json!({ "using": "css selector", "value": selector }))?;
        Ok(found[ELEMENT].as_str().expect("an element has a reference").to_owned())
    }

    /// Clicks what a selector finds first, as soon as it can be clicked.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        self.patiently(selector, || {
            let element = self.find(selector)?;
            self.try_post(&format!("element/{element}/click"), &json!({})).map(Some)
        });
    }

    /// Types a text into a field.
    #[track_caller]
    pub fn fill(&self, selector: &str, text: &str) {
        self.patiently(selector, || {
            let element = self.find(selector)?;
            self.try_post(&format!("element/{element}/value"), &json!({ "text": text })).map(Some)
        });
    }

    /// Presses a key, wherever the focus is. Keys without a sign have code points of the standard's.
    #[track_caller]
    pub fn press(&self, key: char) {
        let actions = ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key }));
        self.post("actions", &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }));
    }

    /// Begins a click on what a selector finds: the button of the mouse is down, until [`Window::let_go`].
    #[track_caller]
    pub fn hold(&self, selector: &str) {
        self.patiently(selector, || {
            let element = self.find(selector)?;
            let there = json!({ "type": "pointerMove", "origin": { ELEMENT: element }, "x": 0, "y": 0 });
            self.point(&[there, json!({ "type": "pointerDown", "button": 0 })]).map(Some)
        });
    }

    /// Ends a click where it began.
    #[track_caller]
    pub fn let_go(&self) {
        self.point(&[json!({ "type": "pointerUp", "button": 0 })]).expect("the button is let go");
    }

    fn point(&self, actions: &[Value]) -> Result<Value, Refusal> {
        let actions = json!({ "actions": [{ "type": "pointer", "id": "mouse", "actions": actions }] });
        self.try_post("actions", &actions)
    }

    /// Shows pages as a screen of this width would, in light or dark.
    pub fn look(&self, width: u32, is_dark: bool) {
        let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &media);
    }

    /// A picture of the page from its top, as WebP, at most `height` pixels of it.
    pub fn picture(&self, width: u32, height: u32) -> Vec<u8> {
        let whole = self.run("return document.documentElement.scrollHeight").as_u64().unwrap_or(0);
        let height = u64::from(height).min(whole.max(320));
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let wanted = json!({ "format": "webp", "quality": 70, "clip": clip, "captureBeyondViewport": true });
        let told = self.devtools("Page.captureScreenshot", &wanted);
        BASE64_STANDARD
            .decode(told["data"].as_str().expect("a picture has data"))
            .expect("pictures are sent in base 64")
    }

    /// Takes it as expected when the console complains of something with this part.
    pub fn excuse(&self, part: &str) {
        self.excused.borrow_mut().push(part.to_owned());
    }

    /// What went wrong since the last time: errors and warnings of the console, breaches of the policy, dialogs.
    #[track_caller]
    pub fn complaints(&self) -> Vec<String> {
        let log = self.post("se/log", &json!({ "type": "browser" }));
        let entries = log.as_array().into_iter().flatten();
        let bad = entries.filter(|entry| ["SEVERE", "WARNING"].contains(&entry["level"].as_str().unwrap_or_default()));
        let mut said: Vec<String> = bad.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect();
        let harmed = self.run("return window.harmed ?? []");
        said.extend(harmed.as_array().into_iter().flatten().map(|what| what.to_string()));
        said.retain(|line| !self.excused.borrow().iter().any(|part| line.contains(part)));
        said
    }

    /// For those who read why a test failed.
    fn state(&self) -> String {
        let script = "return [location.href, document.body?.innerText.slice(0, 4000)].join('\\n')";
        let page = self.try_post("execute/sync", &json!({ "script": script, "args": [] }));
        let log = self.try_post("se/log", &json!({ "type": "browser" }));
        let page =
            page.map_or_else(|refusal| format!("{refusal:?}"), |text| text.as_str().unwrap_or_default().to_owned());
        format!("the page: {page}\nthe console: {}", log.unwrap_or(Value::Null))
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        // A test that has failed already says why.
        let complaints = if thread::panicking() { Vec::new() } else { self.complaints() };
        let _ = self.driver.agent.delete(format!("{}/{}", self.driver.url, self.session)).call();
        assert_eq!(complaints, Vec::<String>::new(), "the console of a page");
    }
}
