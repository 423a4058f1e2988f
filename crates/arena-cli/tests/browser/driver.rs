//! A browser under the control of tests: headless Chromium, through its driver and the standard WebDriver protocol.
//!
//! The protocol is JSON over HTTP, and the tests need only a small part, so they use no library. One library turns on
//! `preserve_order` of `serde_json`, which changes the binary under test in the same workspace. Another depends on code
//! with an incompatible license.

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

/// The time limit for any wait. It is far longer than needed, because build machines are slow and busy.
const TIMEOUT: Duration = Duration::from_secs(40);

/// The time limit for a command of the driver, such as the check of a large page's accessibility.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(150);

/// The interval of polling.
const LOOK: Duration = Duration::from_millis(25);

/// The JSON key of an element's reference in a WebDriver answer.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Code that runs before each page. It records dialogs and violations of the content security policy, which a text
/// from strangers could cause if it ran as code.
const WATCH: &str = "window.harmed = []; for (const name of ['alert', 'confirm', 'prompt']) window[name] = () => window.harmed.push(name);
     addEventListener('securitypolicyviolation', (event) => window.harmed.push(`${event.violatedDirective}: ${event.blockedURI}`));";

/// The driver and all browsers that it has started. They end when the value is dropped.
pub struct Driver {
    process: Child,
    agent: Agent,
    url: String,
    folder: tempfile::TempDir,
    windows: Cell<u32>,
}

impl Driver {
    pub fn start() -> Driver {
        let folder = tempfile::tempdir().unwrap();
        // The driver chooses a port that is free in one address family, and ends if the port is in use in the other
        // family.
        let (process, port) =
            (0..5).find_map(|_| Driver::try_start(folder.path())).expect("the driver prints its port");
        let settings = Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = settings.timeout_global(Some(COMMAND_TIMEOUT)).build().new_agent();
        let url = format!("http://127.0.0.1:{port}/session");
        Driver { process, agent, url, folder, windows: Cell::new(0) }
    }

    /// Starts the driver and reads its port. Returns `None` if the driver ends before it prints the port.
    fn try_start(folder: &Path) -> Option<(Child, u16)> {
        let mut command = Command::new("chromedriver");
        command.args(["--port=0"]).env("TMPDIR", folder).env("HOME", folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let spawned = command.spawn();
        let mut process = spawned.unwrap_or_else(|error| {
            panic!("this test needs Chromium and chromedriver ({error}); run `cargo xtask setup browser`")
        });
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.find_map(|line| Some(line.split_once("started successfully on port ")?.1.to_owned()));
        let Some(port) = said else {
            process.wait().unwrap();
            return None;
        };
        // The output is read to its end, so that the driver never waits for a full pipe.
        thread::spawn(move || lines.for_each(drop));
        Some((process, port.trim_end_matches('.').parse().unwrap()))
    }

    /// Opens a browser with separate storage.
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
            // Chromium's sandbox doesn't run as root. The browser loads only the arena's pages.
            args.push("--no-sandbox".to_owned());
        }
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": args },
            "goog:loggingPrefs": { "browser": "ALL" },
            // Milliseconds, less than the command's.
            "timeouts": { "script": 120_000 },
            // Clicks and page loads return when their action is done; a page with an open stream never finishes
            // loading.
            "pageLoadStrategy": "normal",
        } } });
        let output = self.post("", &wanted).unwrap_or_else(|error| panic!("cannot start a browser: {error:?}"));
        let session = output["sessionId"].as_str().expect("a session has an id").to_owned();
        let window = Window { driver: self, session, excused: RefCell::new(Vec::new()) };
        window.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": WATCH }));
        window
    }

    /// Sends a command to the driver, at a path below its sessions.
    fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        let failed = |error: ureq::Error| Refusal { error: "no answer".to_owned(), message: error.to_string() };
        let request = self.agent.post(format!("{}{path}", self.url)).header("content-type", "application/json");
        let mut answer = request.send(body.to_string()).map_err(failed)?;
        let text = answer.body_mut().with_config().limit(64 << 20).read_to_string().map_err(failed)?;
        let mut output: Value = serde_json::from_str(&text).expect("the driver answers in JSON");
        let value = output["value"].take();
        if answer.status() == 200 {
            return Ok(value);
        }
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        Err(Refusal { error: text("error"), message: text("message") })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // An error is ignored, because the driver may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An error of the driver: a standard code and a message.
#[derive(Debug)]
struct Refusal {
    error: String,
    message: String,
}

impl Refusal {
    /// Returns true if the error may be temporary, for example because the page is loading or the element is covered.
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
            // The element in a condition doesn't exist yet.
            || (self.error == "javascript error" && ["of null", "of undefined"].iter().any(|what| self.message.contains(what)))
    }
}

/// A browser with one window. When it is dropped, unexpected complaints fail the test, unless the test has read them
/// with [`Window::complaints`].
pub struct Window<'d> {
    driver: &'d Driver,
    session: String,
    /// Texts by which expected complaints are recognized.
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

    /// Sends a command of Chromium's own protocol.
    #[track_caller]
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    #[track_caller]
    pub fn open(&self, url: &str) {
        self.post("url", &json!({ "url": url }));
    }

    #[track_caller]
    pub fn reload(&self) {
        self.post("refresh", &json!({}));
    }

    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs an asynchronous script, which passes its result to its last argument, a function.
    #[track_caller]
    pub fn run_slowly(&self, script: &str, arguments: &[Value]) -> Value {
        self.post("execute/async", &json!({ "script": script, "args": arguments }))
    }

    /// Retries an action for as long as its error may be temporary.
    #[track_caller]
    fn patiently<T>(&self, what: &str, mut attempt: impl FnMut() -> Result<Option<T>, Refusal>) -> T {
        let until = Instant::now() + TIMEOUT;
        loop {
            let last = match attempt() {
                Ok(Some(found)) => return found,
                Ok(None) => String::new(),
                Err(refusal) if refusal.may_pass() => format!("{refusal:?}"),
                Err(refusal) => panic!("{what}: {refusal:?}\n{}", self.state()),
            };
            assert!(Instant::now() < until, "timeout while waiting for {what}: {last}\n{}", self.state());
            // WebDriver can't wait for a condition, so the test polls.
            thread::sleep(LOOK);
        }
    }

    /// Waits until a JavaScript expression is true, and returns its value.
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

    /// Waits until the visible part of the page contains a text.
    #[track_caller]
    pub fn see(&self, text: &str) {
        self.wait(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Returns true if the visible part of the page contains a text.
    #[track_caller]
    pub fn sees(&self, text: &str) -> bool {
        self.text("body").contains(text)
    }

    /// Returns the visible text of the first element that matches a selector.
    #[track_caller]
    pub fn text(&self, selector: &str) -> String {
        let found = format!("document.querySelector({})?.innerText", json!(selector));
        self.run(&format!("return {found} ?? ''")).as_str().unwrap_or_default().to_owned()
    }

    fn find(&self, selector: &str) -> Result<String, Refusal> {
        let found = self.try_post("element", &json!({ "using": "css selector", "value": selector }))?;
        Ok(found[ELEMENT].as_str().expect("an element has a reference").to_owned())
    }

    /// Clicks the first element that matches a selector, once it can be clicked.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        self.patiently(selector, || {
            let element = self.find(selector)?;
            self.try_post(&format!("element/{element}/click"), &json!({})).map(Some)
        });
    }

    #[track_caller]
    pub fn fill(&self, selector: &str, text: &str) {
        self.patiently(selector, || {
            let element = self.find(selector)?;
            self.try_post(&format!("element/{element}/value"), &json!({ "text": text })).map(Some)
        });
    }

    /// Presses a key in the focused element. The WebDriver standard assigns code points to keys without a character.
    #[track_caller]
    pub fn press(&self, key: char) {
        let actions = ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key }));
        self.post("actions", &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }));
    }

    #[track_caller]
    pub fn press_with(&self, held: char, key: char) {
        let actions = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)];
        let actions = actions.map(|(kind, value)| json!({ "type": kind, "value": value }));
        self.post("actions", &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }));
    }

    /// Moves the keyboard's focus to the first element that matches a selector, and presses Enter.
    #[track_caller]
    pub fn enter(&self, selector: &str) {
        let selector = json!(selector);
        self.wait(&format!(
            "(document.querySelector({selector})?.focus(), document.activeElement?.matches({selector}))"
        ));
        self.press('\u{e007}');
    }

    /// Taps the first element that matches a selector, as on a touch screen.
    #[track_caller]
    pub fn tap(&self, selector: &str) {
        self.devtools("Emulation.setTouchEmulationEnabled", &json!({ "enabled": true }));
        self.patiently(selector, || {
            let element = json!({ ELEMENT: self.find(selector)? });
            let script =
                "arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' }); return !arguments[0].disabled;";
            let is_enabled = self.try_post("execute/sync", &json!({ "script": script, "args": [element] }))?;
            if is_enabled == json!(false) {
                return Ok(None);
            }
            let actions = json!([
                { "type": "pointerMove", "origin": element, "x": 0, "y": 0 },
                { "type": "pointerDown", "button": 0 },
                { "type": "pointerUp", "button": 0 },
            ]);
            let touch = json!({ "pointerType": "touch" });
            let finger = json!({ "type": "pointer", "id": "finger", "parameters": touch, "actions": actions });
            self.try_post("actions", &json!({ "actions": [finger] })).map(Some)
        });
    }

    /// Moves a finger on the first element that matches a selector, from its middle by `x` and `y` pixels.
    #[track_caller]
    pub fn swipe(&self, selector: &str, [x, y]: [i32; 2]) {
        self.patiently(selector, || {
            let actions = json!([
                { "type": "pointerMove", "origin": { ELEMENT: self.find(selector)? }, "x": 0, "y": 0 },
                { "type": "pointerDown", "button": 0 },
                { "type": "pointerMove", "origin": "pointer", "x": x, "y": y, "duration": 60 },
                { "type": "pointerUp", "button": 0 },
            ]);
            let touch = json!({ "pointerType": "touch" });
            let finger = json!({ "type": "pointer", "id": "finger", "parameters": touch, "actions": actions });
            self.try_post("actions", &json!({ "actions": [finger] })).map(Some)
        });
    }

    /// Presses the mouse button on an element, until [`Window::let_go`].
    #[track_caller]
    pub fn hold(&self, selector: &str) {
        self.patiently(selector, || {
            let element = self.find(selector)?;
            let there = json!({ "type": "pointerMove", "origin": { ELEMENT: element }, "x": 0, "y": 0 });
            self.point(&[there, json!({ "type": "pointerDown", "button": 0 })]).map(Some)
        });
    }

    /// Moves the mouse by a number of pixels.
    #[track_caller]
    pub fn move_by(&self, x: i64, y: i64) {
        self.point(&[json!({ "type": "pointerMove", "origin": "pointer", "x": x, "y": y })]).expect("the mouse moves");
    }

    /// Releases the mouse button at the current position.
    #[track_caller]
    pub fn let_go(&self) {
        self.point(&[json!({ "type": "pointerUp", "button": 0 })]).expect("the button is released");
    }

    fn point(&self, actions: &[Value]) -> Result<Value, Refusal> {
        let actions = json!({ "actions": [{ "type": "pointer", "id": "mouse", "actions": actions }] });
        self.try_post("actions", &actions)
    }

    /// Emulates a screen of this width, in light or dark mode.
    pub fn look(&self, width: u32, is_dark: bool) {
        self.look_at([width, 800], is_dark);
    }

    /// Emulates a screen of this width and height, in light or dark mode.
    pub fn look_at(&self, [width, height]: [u32; 2], is_dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &media);
    }

    /// Waits until an element is visible as a whole without scrolling.
    #[track_caller]
    pub fn shows(&self, selector: &str) {
        let place = format!("document.querySelector({})?.getBoundingClientRect()", json!(selector));
        self.wait(&format!("scrollY === 0 && {place}.top >= 0 && {place}.bottom <= innerHeight"));
    }

    /// Returns the faults of the page's layout: clipped text, boxes outside of the screen, controls and texts that
    /// overlap.
    #[track_caller]
    pub fn misfits(&self) -> Vec<String> {
        let output = self.run_slowly(include_str!("layout.js"), &[]);
        output.as_array().unwrap().iter().map(|line| line.as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Emulates a window of this width with the browser's zoom at `percent`. The page gets fewer, larger pixels.
    pub fn zoom(&self, width: u32, percent: u32) {
        let [width, height] = [width, 800].map(|length| length * 100 / percent);
        let scale = f64::from(percent) / 100.0;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Takes the browser off the network, or brings it back.
    #[track_caller]
    pub fn set_offline(&self, is_offline: bool) {
        let conditions = json!({ "offline": is_offline, "latency": 0, "throughput": -1 });
        self.post("chromium/network_conditions", &json!({ "network_conditions": conditions }));
    }

    /// Returns a picture of the top of the page in WebP format, at most `height` pixels high.
    pub fn picture(&self, width: u32, height: u32) -> Vec<u8> {
        let whole = self.run("return document.documentElement.scrollHeight").as_u64().unwrap_or(0);
        let height = u64::from(height).min(whole.max(320));
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let wanted = json!({ "format": "webp", "quality": 70, "clip": clip, "captureBeyondViewport": true });
        let output = self.devtools("Page.captureScreenshot", &wanted);
        BASE64_STANDARD.decode(output["data"].as_str().expect("a picture has data")).expect("a picture is in base64")
    }

    /// Returns a picture of an element in PNG format, in base64.
    #[track_caller]
    pub fn picture_of(&self, selector: &str) -> Value {
        let script = format!(
            "const {{ x, y, width, height }} = document.querySelector({}).getBoundingClientRect();
             return {{ x: x + scrollX, y: y + scrollY, width, height, scale: 1 }};",
            json!(selector)
        );
        let wanted = json!({ "format": "png", "clip": self.run(&script), "captureBeyondViewport": true });
        self.devtools("Page.captureScreenshot", &wanted)["data"].clone()
    }

    /// Returns the share of pixels that differ between two pictures of the same size, from 0 to 1.
    #[track_caller]
    pub fn difference(&self, one: &Value, other: &Value) -> f64 {
        let script = "
            const [one, other, done] = arguments;
            const pixels = async (picture) => {
              const bytes = Uint8Array.from(atob(picture), (char) => char.charCodeAt(0));
              const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
              const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
              context.drawImage(image, 0, 0);
              return new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
            };
            Promise.all([one, other].map(pixels)).then(([one, other]) => {
              const differ = one.filter((pixel, at) => pixel !== other[at]).length;
              done(one.length === other.length ? differ / one.length : -1);
            }, (error) => done(`${error}`));";
        let share = self.run_slowly(script, &[one.clone(), other.clone()]);
        share
            .as_f64()
            .filter(|share| *share >= 0.0)
            .unwrap_or_else(|| panic!("the pictures can't be compared: {share}"))
    }

    /// Makes complaints that contain `part` expected.
    pub fn excuse(&self, part: &str) {
        self.excused.borrow_mut().push(part.to_owned());
    }

    /// Returns all faults since the last call: errors and warnings in the console, violations of the content security
    /// policy, dialogs.
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

    /// Returns the page's address, its text and its console, for the message of a failed test.
    fn state(&self) -> String {
        let script = "return [location.href, document.body?.innerText.slice(0, 4000)].join('\\n')";
        let page = self.try_post("execute/sync", &json!({ "script": script, "args": [] }));
        let log = self.try_post("se/log", &json!({ "type": "browser" }));
        let page =
            page.map_or_else(|refusal| format!("{refusal:?}"), |text| text.as_str().unwrap_or_default().to_owned());
        format!("page: {page}\nconsole: {}", log.unwrap_or(Value::Null))
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        // A test that has failed already doesn't fail again.
        let complaints = if thread::panicking() { Vec::new() } else { self.complaints() };
        let _ = self.driver.agent.delete(format!("{}/{}", self.driver.url, self.session)).call();
        assert_eq!(complaints, Vec::<String>::new(), "complaints in a page's console");
    }
}
