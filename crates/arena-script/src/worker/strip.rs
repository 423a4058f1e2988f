//! Type stripping: from the author's file to JavaScript, with its imports and globals.

use std::collections::{BTreeMap, BTreeSet};

use oxc_allocator::Allocator;
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::{SourceType, Span};

use super::blank::{Blanked, blank};
use crate::Problem;

/// A module without types, ready for the compiler.
pub(super) struct Stripped {
    /// The JavaScript code, with the lines of the file.
    pub(super) code: String,
    /// The imports that remain at run time, each with its line.
    pub(super) imports: BTreeMap<String, u32>,
    /// The imports that type stripping removed, because they are types or unused, each with its line. Excludes `import
    /// type`.
    pub(super) unused: BTreeMap<String, u32>,
    /// The names that the module uses and doesn't declare: the global objects that it depends on.
    pub(super) globals: BTreeSet<String>,
}

/// Removes the types from a TypeScript module. JavaScript modules are parsed too, so that their errors have the same
/// form.
pub(super) fn strip(file: &str, text: &str) -> Result<Stripped, Vec<Problem>> {
    let is_typed = file.ends_with(".ts");
    let allocator = Allocator::default();
    let source_type = if is_typed { SourceType::ts() } else { SourceType::mjs() };
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
    let semantic = SemanticBuilder::new().with_check_syntax_error(true).build(&parsed.program);
    if !semantic.diagnostics.is_empty() {
        return Err(problems(&semantic.diagnostics));
    }
    let scoping = semantic.semantic.into_scoping();
    let Blanked { code, removed } = if is_typed {
        let refused =
            |refused: Vec<_>| refused.into_iter().map(|(span, message)| problem_at(span, message)).collect::<Vec<_>>();
        blank(text, &parsed.program, &scoping).map_err(refused)?
    } else {
        Blanked { code: text.to_owned(), removed: BTreeSet::new() }
    };
    let record = &parsed.module_record;
    let named = |span: Span| {
        let mut entries = record.import_entries.iter().filter(|entry| entry.statement_span == span).peekable();
        entries.peek().is_none() || entries.any(|entry| !entry.is_type)
    };
    let (mut imports, mut unused) = (BTreeMap::new(), BTreeMap::new());
    for (name, requests) in &record.requested_modules {
        let mut lines = requests
            .iter()
            .filter(|request| !request.is_type)
            .map(|request| (request.statement_span, line_of(text, request.statement_span.start)));
        if let Some((_, line)) = lines.clone().find(|(span, _)| !removed.contains(&span.start)) {
            imports.insert(name.to_string(), line);
        } else if let Some((_, line)) = lines.find(|(span, _)| named(*span)) {
            unused.insert(name.to_string(), line);
        }
    }
    let globals = scoping.root_unresolved_references().keys().map(ToString::to_string).collect();
    Ok(Stripped { code, imports, unused, globals })
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
            Ok(stripped) => format!("{}{:?} {:?}\n", stripped.code, stripped.imports, stripped.unused),
            Err(problems) => problems.iter().map(|problem| format!("{problem}\n")).collect(),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn types_become_spaces() {
        check(
            "import type { A } from \"a\";\nimport { B, type C } from \"b\";\nimport { D } from \"d\";\n\n\
             export class Game<T> extends B {\n  declare gameState: T;\n  name: string;\n  #seed?: number = 1;\n\n  \
             constructor(private readonly deck: number[], x?: D) {\n    super();\n  }\n  \
             top(): number { return this.deck.at(-1)! as unknown as number; }\n}\n\
             const limits = { most: 3 } satisfies Record<string, number>\nexport const s = <T,>(x: T): T => x;\n",
            expect![[r#"
                ;                          
                import { B,        } from "b";
                ;                     

                export class Game    extends B {
                  ;                    
                  ;            
                  #seed          = 1;

                  constructor(                 deck          , x    ) {
                    super(); this.deck = deck;
                  }
                  top()         { return this.deck.at(-1)                      ; }
                }
                const limits = { most: 3 } ;                               
                export const s = (    x   )    => x;
                {"b": 2} {"d": 3}
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
