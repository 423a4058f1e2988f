//! Tests in the form of transcripts: inputs, each above its answer.

use expect_test::Expect;

/// Checks a transcript. Its lines that begin with `$` are inputs; the answer to each stands below it.
#[track_caller]
pub fn transcript(expected: &Expect, mut answer: impl FnMut(&str) -> String) {
    let mut actual = String::new();
    for input in expected.data().lines().filter_map(|line| line.trim_start().strip_prefix('$')) {
        let answer = answer(input.trim());
        actual += &format!("${input}\n{answer}{}", if answer.ends_with('\n') || answer.is_empty() { "" } else { "\n" });
    }
    expected.assert_eq(&actual);
}
