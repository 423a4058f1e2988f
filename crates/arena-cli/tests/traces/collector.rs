//! The collector in `collector.py`, and the spans that it has received.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A collector in the background, which is killed on drop.
pub struct Collector {
    child: Child,
    folder: TempDir,
    endpoint: String,
}

impl Collector {
    pub fn start() -> Collector {
        let folder = tempfile::tempdir().unwrap();
        let files = ["spans", "bytes"].map(|name| folder.path().join(name));
        for file in &files {
            fs::write(file, "").unwrap();
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/collector.py");
        let mut command = Command::new(arena_testkit::python(env!("CARGO_TARGET_TMPDIR")));
        let mut child = command.arg("-B").arg(script).args(files).stdout(Stdio::piped()).spawn().unwrap();
        let mut endpoint = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut endpoint).unwrap();
        Collector { child, folder, endpoint: endpoint.trim().to_owned() }
    }

    /// Returns the variables of a program that exports to this collector at its end, under the name of a service.
    pub fn environment<'c>(&'c self, service: &'c str) -> [(&'c str, &'c str); 3] {
        [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &self.endpoint),
            ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
            ("OTEL_SERVICE_NAME", service),
        ]
    }

    /// Returns everything that was received.
    pub fn end(self) -> ReceivedSpans {
        let lines = fs::read_to_string(self.folder.path().join("spans")).unwrap();
        let spans = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        ReceivedSpans { spans, bytes: fs::read(self.folder.path().join("bytes")).unwrap() }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The spans that a collector has received.
pub struct ReceivedSpans {
    spans: Vec<Value>,
    /// The requests as they were received.
    bytes: Vec<u8>,
}

impl ReceivedSpans {
    pub fn spans(&self) -> impl Iterator<Item = &Value> {
        self.spans.iter()
    }

    /// Returns the spans with a name.
    pub fn all(&self, name: &str) -> Vec<&Value> {
        self.spans().filter(|span| span["name"] == name).collect()
    }

    /// Returns the only span with a name.
    #[track_caller]
    pub fn named(&self, name: &str) -> &Value {
        match self.all(name)[..] {
            [span] => span,
            ref others => panic!("{} spans have the name {name}: {:#?}", others.len(), self.spans),
        }
    }

    /// Checks that no request contains one of these texts.
    #[track_caller]
    pub fn lack(&self, texts: &[&str]) {
        assert!(!self.bytes.is_empty());
        for text in texts {
            let found = self.bytes.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!found, "{text} was exported: {:#?}", self.spans);
        }
    }
}
