//! Type stripping: from the author's file to JavaScript, with a map of line numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::{SourceType, Span};
use oxc_transformer::{TransformOptions, Transformer, TypeScriptOptions};

use crate::Problem;

/// A module without types, ready for the compiler.
pub(super) struct Stripped {
    /// The JavaScript code.
    pub(super) code: String,
    /// The imports that remain at run time, each with its line.
    pub(super) imports: BTreeMap<String, u32>,
    /// The imports that type stripping removed, because they are types or unused, each with its line. Excludes `import
    /// type`.
    pub(super) unused: BTreeMap<String, u32>,
    /// The names that the module uses and doesn't declare: the global objects that it depends on.
    pub(super) globals: BTreeSet<String>,
    /// For each line of `code`, the line of the original file, or 0 if there is none. Both count from 1.
    pub(super) lines: Vec<u32>,
}

/// Removes the types from a TypeScript module. JavaScript modules are processed too, so that their errors have the
/// same form.
pub(super) fn strip(file: &str, text: &str) -> Result<Stripped, Vec<Problem>> {
    let allocator = Allocator::default();
    let source_type = if file.ends_with(".ts") { SourceType::ts() } else { SourceType::mjs() };
    let parsed = Parser::new(&allocator, text, source_type).parse();
    let problem_at = |span: Span, message: String| Problem::at(file, line_of(text, span.start), message);
    let problems = |diagnostics: &[OxcDiagnostic]| -> Vec<Problem> {
        diagnostics
            .iter()
            .map(|diagnostic| {
                let help = diagnostic.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
                let line = diagnostic.labels.first().map(|label| line_of(text, label.offset()));
                Problem { file: file.to_owned(), line, message: format!("{}{help}", diagnostic.message) }
            })
            .collect()
    };
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return Err(problems(&parsed.diagnostics));
    }
    if let Some(import) = parsed.module_record.dynamic_imports.first() {
        let message = "import() isn't supported: nothing can be loaded while a script runs; write `import … from …`";
        return Err(vec![problem_at(import.span, message.to_owned())]);
    }
    let named = |span: Span| {
        let mut entries =
            parsed.module_record.import_entries.iter().filter(|entry| entry.statement_span == span).peekable();
        entries.peek().is_none() || entries.any(|entry| !entry.is_type)
    };
    let mut unused: BTreeMap<String, u32> = BTreeMap::new();
    for (name, requests) in &parsed.module_record.requested_modules {
        if let Some(request) = requests.iter().find(|request| !request.is_type && named(request.statement_span)) {
            unused.insert(name.to_string(), line_of(text, request.statement_span.start));
        }
    }
    let mut program = parsed.program;
    let semantic = SemanticBuilder::new().with_check_syntax_error(true).with_enum_eval(true).build(&program);
    if !semantic.diagnostics.is_empty() {
        return Err(problems(&semantic.diagnostics));
    }
    let scoping = semantic.semantic.into_scoping();
    let globals = scoping.root_unresolved_references().keys().map(ToString::to_string).collect();
    // A field with only a declaration must not overwrite the base class's value.
    let typescript =
        TypeScriptOptions { remove_class_fields_without_initializer: true, ..TypeScriptOptions::default() };
    let options = TransformOptions { typescript, ..TransformOptions::default() };
    let transformed = Transformer::new(&allocator, Path::new(file), &options).build_with_scoping(scoping, &mut program);
    if !transformed.diagnostics.is_empty() {
        return Err(problems(&transformed.diagnostics));
    }
    let options = CodegenOptions { source_map_path: Some(file.into()), ..CodegenOptions::default() };
    let printed = Codegen::new().with_options(options).build(&program);
    let mut lines = vec![0; printed.code.lines().count()];
    for token in printed.map.iter().flat_map(|map| map.get_tokens()) {
        if let Some(line) = lines.get_mut(token.get_dst_line() as usize)
            && *line == 0
        {
            *line = token.get_src_line() + 1;
        }
    }
    // The imports in the output, which are those that remain at run time.
    let code = printed.code;
    let allocator = Allocator::default();
    let record = Parser::new(&allocator, &code, SourceType::mjs()).parse().module_record;
    let imports: BTreeMap<String, u32> = record
        .requested_modules
        .iter()
        .map(|(name, requests)| {
            let line = requests.first().map_or(1, |request| line_of(&code, request.statement_span.start));
            (name.to_string(), lines.get(line as usize - 1).copied().unwrap_or(0))
        })
        .collect();
    unused.retain(|name, _| !imports.contains_key(name));
    Ok(Stripped { code, imports, unused, globals, lines })
}

/// Returns the line, from 1, of the byte at `offset`.
fn line_of(text: &str, offset: u32) -> u32 {
    let before = text.as_bytes().get(..offset as usize).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u32
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let actual = match strip("index.ts", text) {
            Ok(stripped) => format!("{}{:?} {:?}\n", stripped.code, stripped.imports, stripped.lines),
            Err(problems) => problems.iter().map(|problem| format!("{problem}\n")).collect(),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn types_are_removed_and_lines_are_mapped() {
        check(
            "import type { A } from \"a\";\nimport { B, type C } from \"b\";\nimport { D } from \"d\";\n\n\
             enum Suit { Hearts, Spades = 4 }\nexport class Game<T> extends B {\n  declare gameState: T;\n  name: string;\n  \
             #seed = 1;\n\n  constructor(private readonly deck: number[], x?: D) {\n    super();\n  }\n  \
             top(): number { return this.deck.at(-1)! as unknown as number; }\n}\n\
             const limits = { most: 3 } satisfies Record<string, number>;\nexport const s = <T,>(x: T): T => x;\n",
            expect![[r#"
                import { B } from "b";
                var Suit = /* @__PURE__ */ function(Suit) {
                	Suit[Suit["Hearts"] = 0] = "Hearts";
                	Suit[Suit["Spades"] = 4] = "Spades";
                	return Suit;
                }(Suit || {});
                export class Game extends B {
                	#seed = 1;
                	constructor(deck, x) {
                		super();
                		this.deck = deck;
                	}
                	top() {
                		return this.deck.at(-1);
                	}
                }
                const limits = { most: 3 };
                export const s = (x) => x;
                {"b": 2} [2, 5, 5, 5, 0, 5, 6, 9, 11, 12, 11, 13, 14, 14, 14, 15, 16, 17]
            "#]],
        );
    }

    #[test]
    fn errors_have_line_numbers() {
        check(
            "const a = 1;\nconst b = ;\n",
            expect![[r#"
            index.ts:2: Unexpected token
        "#]],
        );
        check(
            "const a = 1;\n\nconst a = 2;\n",
            expect![[r#"
            index.ts:1: Identifier `a` has already been declared
        "#]],
        );
        check(
            "\nconst x = await import(\"./x.ts\");\n",
            expect![[r#"
            index.ts:2: import() isn't supported: nothing can be loaded while a script runs; write `import … from …`
        "#]],
        );
    }
}
