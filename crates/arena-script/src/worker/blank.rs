//! Type blanking: TypeScript becomes JavaScript when spaces replace its types. Everything else stays in its place, so
//! errors have the lines and columns of the author's file.
//!
//! A `;` replaces a type that separated two statements. Brackets are moved or added where spaces alone would change the
//! meaning.

use std::collections::{BTreeMap, BTreeSet};

use oxc_ast::ast::{
    AccessorProperty, ArrowFunctionExpression, BindingIdentifier, Class, ClassElement, Declaration, Decorator,
    ExportDefaultDeclarationKind, ExportSpecifier, Expression, FormalParameter, Function, IdentifierReference,
    ImportDeclaration, ImportDeclarationSpecifier, MethodDefinition, MethodDefinitionType, ModuleExportName, Program,
    PropertyDefinition, PropertyDefinitionType, Statement, TSAsExpression, TSEnumDeclaration, TSExportAssignment,
    TSImportEqualsDeclaration, TSNamespaceDeclaration, TSNonNullExpression, TSSatisfiesExpression, TSThisParameter,
    TSTypeAnnotation, TSTypeAssertion, TSTypeParameterDeclaration, TSTypeParameterInstantiation, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{Reference, Scoping, SymbolFlags};
use oxc_span::{GetSpan, Span};

const LINE_BREAKS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// The modifiers of class members and parameters that only TypeScript has.
const MODIFIERS: [&str; 7] = ["public", "private", "protected", "readonly", "override", "abstract", "declare"];

/// A module without types.
pub(super) struct Blanked {
    pub(super) code: String,
    /// The starts of the statements that were removed.
    pub(super) removed: BTreeSet<u32>,
}

/// Removes the types from a parsed module. Refuses syntax that is more than types, each with its place and a message.
pub(super) fn blank(text: &str, program: &Program<'_>, scoping: &Scoping) -> Result<Blanked, Vec<(Span, String)>> {
    let mut blanker = Blanker {
        text,
        scoping,
        blanks: BTreeMap::new(),
        ends: BTreeMap::new(),
        inserted: BTreeMap::new(),
        removed: BTreeSet::new(),
        refused: Vec::new(),
        is_derived: false,
    };
    blanker.visit_program(program);
    if !blanker.refused.is_empty() {
        return Err(blanker.refused);
    }
    Ok(Blanked { code: blanker.code(), removed: blanker.removed })
}

/// A part of the text that becomes spaces, except for line breaks.
struct Blank {
    end: u32,
    /// The character at the beginning, if it isn't a space.
    first: Option<char>,
}

struct Blanker<'t> {
    text: &'t str,
    scoping: &'t Scoping,
    /// The blanks by their starts. They don't overlap.
    blanks: BTreeMap<u32, Blank>,
    /// The start of each blank by its end.
    ends: BTreeMap<u32, u32>,
    /// The texts that are inserted, by position. At the same position, they come before a blank.
    inserted: BTreeMap<u32, String>,
    removed: BTreeSet<u32>,
    refused: Vec<(Span, String)>,
    /// True if the current class extends another one.
    is_derived: bool,
}

impl Blanker<'_> {
    /// Returns the text with all changes.
    fn code(&self) -> String {
        let mut code = String::with_capacity(self.text.len());
        let mut at = 0;
        let starts = self.blanks.keys().chain(self.inserted.keys()).copied().collect::<BTreeSet<_>>();
        for start in starts {
            code += self.slice(at, start);
            at = start;
            if let Some(text) = self.inserted.get(&start) {
                code += text;
            }
            if let Some(Blank { end, first }) = self.blanks.get(&start) {
                let spaces = self.slice(start, *end).chars().map(|c| if LINE_BREAKS.contains(&c) { c } else { ' ' });
                code.extend(first.iter().copied().chain(spaces.skip(usize::from(first.is_some()))));
                at = *end;
            }
        }
        code + self.slice(at, self.text.len() as u32)
    }

    fn slice(&self, start: u32, end: u32) -> &str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    fn blank(&mut self, start: u32, end: u32) {
        self.blank_as(start, end, None);
    }

    fn blank_as(&mut self, start: u32, end: u32, first: impl Into<Option<char>>) {
        if start < end {
            self.blanks.insert(start, Blank { end, first: first.into() });
            self.ends.insert(end, start);
        }
    }

    fn insert(&mut self, at: u32, text: &str) {
        self.inserted.entry(at).or_default().push_str(text);
    }

    /// Removes a statement or class member. The `;` keeps its neighbors apart.
    fn remove(&mut self, span: Span) {
        self.blank_as(span.start, span.end, ';');
        self.removed.insert(span.start);
    }

    fn refuse(&mut self, span: Span, message: &str) {
        self.refused.push((span, message.to_owned()));
    }

    /// Ends a statement or class member with `;` if it ended with a type, because a type can end a line that JavaScript
    /// would continue on the next one: `a = b as T` before `(c)`.
    fn end(&mut self, end: u32) {
        if let Some(start) = self.ends.get(&end)
            && let Some(blank) = self.blanks.get_mut(start)
        {
            blank.first.get_or_insert(';');
        }
    }

    /// Returns the position of the next token at or after `at`.
    fn token(&self, at: u32) -> u32 {
        let mut rest = &self.text[at as usize..];
        loop {
            rest = rest.trim_start();
            if let Some(comment) = rest.strip_prefix("//") {
                rest = comment.find(LINE_BREAKS).map_or("", |end| &comment[end..]);
            } else if let Some(comment) = rest.strip_prefix("/*") {
                rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else {
                return (self.text.len() - rest.len()) as u32;
            }
        }
    }

    fn blank_sign(&mut self, at: u32, sign: char) {
        let at = self.token(at);
        if self.text[at as usize..].starts_with(sign) {
            self.blank(at, at + 1);
        }
    }

    /// Returns the words between two positions, without those in comments.
    fn words(&self, start: u32, end: u32) -> Vec<Span> {
        let mut words = Vec::new();
        let mut at = self.token(start);
        while at < end {
            let rest = &self.text[at as usize..];
            let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
            if length > 0 {
                words.push(Span::new(at, at + length as u32));
                at += length as u32;
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8) as u32;
            }
            at = self.token(at);
        }
        words
    }

    fn blank_modifiers(&mut self, start: u32, end: u32, first: Option<char>) {
        for word in self.words(start, end) {
            if MODIFIERS.contains(&self.slice(word.start, word.end)) {
                // Without `;`, a member such as `private *rest()` would continue the member before it.
                self.blank_as(word.start, word.end, first.filter(|_| word.start == start));
            }
        }
    }

    /// Blanks the `?` or `!` after the name of a class member.
    fn blank_mark(&mut self, key: Span, is_computed: bool) {
        let end = if is_computed { self.token(key.end) + 1 } else { key.end };
        self.blank_sign(end, '?');
        self.blank_sign(end, '!');
    }

    /// Blanks the specifiers of an import or export that are types. Returns true if no specifier is left.
    fn blank_specifiers(&mut self, specifiers: impl Iterator<Item = (Span, bool)>) -> bool {
        let specifiers: Vec<_> = specifiers.collect();
        if specifiers.iter().all(|(_, is_type)| *is_type) {
            return !specifiers.is_empty();
        }
        for (span, _) in specifiers.into_iter().filter(|(_, is_type)| *is_type) {
            self.blank(span.start, span.end);
            self.blank_sign(span.end, ',');
        }
        false
    }

    /// Returns true if an import is never used as a value.
    fn is_unused(&self, name: &BindingIdentifier<'_>) -> bool {
        let symbol = name.symbol_id();
        // A value of the module itself may have the name of an imported type.
        (self.scoping.symbol_flags(symbol) - SymbolFlags::Import).is_value()
            || self.scoping.get_resolved_references(symbol).all(Reference::is_type)
    }

    /// Returns true if an exported name is only a type.
    fn is_type(&self, name: &IdentifierReference<'_>) -> bool {
        let reference = self.scoping.get_reference(name.reference_id());
        reference.symbol_id().is_some_and(|symbol| {
            let is_ambient = |flags: SymbolFlags| flags.is_ambient();
            reference.is_type()
                || is_ambient(self.scoping.symbol_flags(symbol))
                    && self.scoping.symbol_redeclarations(symbol).iter().all(|other| is_ambient(other.flags))
        })
    }

    fn export_specifiers(&mut self, specifiers: &[ExportSpecifier<'_>]) -> bool {
        let types = specifiers.iter().map(|specifier| {
            let is_type = specifier.export_kind.is_type()
                || matches!(&specifier.local, ModuleExportName::IdentifierReference(name) if self.is_type(name));
            (specifier.span, is_type)
        });
        let types: Vec<_> = types.collect();
        self.blank_specifiers(types.into_iter())
    }

    fn import(&mut self, import: &ImportDeclaration<'_>) -> bool {
        let specifiers = import.specifiers.as_ref().map_or(&[][..], |specifiers| specifiers);
        let types = specifiers.iter().map(|specifier| match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(one) => {
                (one.span, one.import_kind.is_type() || self.is_unused(&one.local))
            }
            ImportDeclarationSpecifier::ImportDefaultSpecifier(one) => (one.span, self.is_unused(&one.local)),
            ImportDeclarationSpecifier::ImportNamespaceSpecifier(one) => (one.span, self.is_unused(&one.local)),
        });
        let types: Vec<_> = types.collect();
        // In `import a, * as b`, the comma goes with either of them.
        if let [(first, false), (_, true)] = types[..]
            && matches!(specifiers[1], ImportDeclarationSpecifier::ImportNamespaceSpecifier(_))
        {
            self.blank_sign(first.end, ',');
        }
        self.blank_specifiers(types.into_iter())
    }

    /// Returns true if a declaration has no value.
    fn is_type_only(&self, declaration: &Declaration<'_>) -> bool {
        match declaration {
            Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_)
            | Declaration::TSGlobalDeclaration(_)
            | Declaration::TSExternalModuleDeclaration(_) => true,
            Declaration::VariableDeclaration(one) => one.declare,
            Declaration::FunctionDeclaration(one) => one.declare || one.body.is_none(),
            Declaration::ClassDeclaration(one) => one.declare,
            Declaration::TSEnumDeclaration(one) => one.declare,
            Declaration::TSNamespaceDeclaration(one) => {
                one.declare || self.scoping.symbol_flags(one.id.symbol_id()).is_namespace_module()
            }
            Declaration::TSImportEqualsDeclaration(one) => one.import_kind.is_type() || self.is_unused(&one.id),
        }
    }

    /// Returns true if a statement has no value. Blanks the specifiers of imports and exports that have none.
    fn is_removed(&mut self, statement: &Statement<'_>) -> bool {
        match statement {
            Statement::ImportDeclaration(one) => one.import_kind.is_type() || self.import(one),
            Statement::ExportNamedDeclaration(one) => {
                one.export_kind.is_type() || self.export_specifiers(&one.specifiers)
            }
            Statement::ExportFromDeclaration(one) => {
                one.export_kind.is_type() || self.export_specifiers(&one.specifiers)
            }
            Statement::ExportAllDeclaration(one) => one.export_kind.is_type(),
            Statement::ExportDeclaration(one) => self.is_type_only(&one.declaration),
            Statement::ExportDefaultDeclaration(one) => match &one.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(one) => one.body.is_none(),
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
                ExportDefaultDeclarationKind::Identifier(name) => self.is_type(name),
                _ => false,
            },
            Statement::TSNamespaceExportDeclaration(_) => true,
            _ => statement.as_declaration().is_some_and(|declaration| self.is_type_only(declaration)),
        }
    }

    /// Blanks the type at the end of an expression: `as T` or `satisfies T`.
    fn blank_after(&mut self, expression: &Expression<'_>, end: u32) {
        let start = self.token(expression.span().end);
        self.blank(start, end);
    }

    /// Assigns the parameters that are also fields, at the beginning of a constructor or after its call of `super`.
    fn assign_parameters(&mut self, constructor: &Function<'_>) {
        let parameters = constructor.params.items.iter().filter(|parameter| parameter.has_modifier());
        let names = parameters.filter_map(|parameter| parameter.pattern.get_identifier_name());
        let assignments: String = names.map(|name| format!(" this.{name} = {name};")).collect();
        let Some(body) = constructor.body.as_ref().filter(|_| !assignments.is_empty()) else { return };
        let calls_super = |statement: &&Statement<'_>| matches!(statement, Statement::ExpressionStatement(one) if one.expression.is_super_call_expression());
        if let Some(call) = body.statements.iter().find(calls_super) {
            let end = call.span().end;
            let separator = if self.slice(call.span().start, end).ends_with(';') { "" } else { ";" };
            self.insert(end, &format!("{separator}{assignments}"));
        } else if self.is_derived {
            let message = "a constructor with parameters that are fields must call super(…) in a statement of its own; \
                           write `this.name = name` after the call instead";
            self.refuse(constructor.params.span, message);
        } else {
            let start = body.directives.last().map_or(body.span.start + 1, |last| last.span.end);
            self.insert(start, &format!("{}{assignments}", if body.directives.is_empty() { "" } else { ";" }));
        }
    }
}

impl<'a> Visit<'a> for Blanker<'_> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        if self.is_removed(it) {
            self.remove(it.span());
            return;
        }
        walk::walk_statement(self, it);
        self.end(it.span().end);
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.blank(it.span.start, it.span.end);
        self.blank_sign(it.span.end, ',');
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_after(&it.expression, it.span.end);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_after(&it.expression, it.span.end);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_after(&it.expression, it.span.end);
    }

    /// The brackets in `<T>a` keep the value together, as after `return` with a line break in the type.
    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.blank_as(it.span.start, it.expression.span().start, '(');
        self.visit_expression(&it.expression);
        self.insert(it.span.end, ")");
    }

    /// No line break may come between `return` or `async` and `(`, or between `)` and `=>`. So the brackets move to the
    /// outer ends of the types.
    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        let params = it.params.span;
        if let Some(types) = &it.type_parameters {
            self.blank_as(types.span.start, params.start + 1, '(');
        }
        if let Some(types) = &it.return_type {
            let arrow = self.token(types.span.end);
            if self.slice(params.end, arrow).contains(LINE_BREAKS) {
                self.blank(params.end - 1, types.span.end);
                self.insert(arrow, ")");
            } else {
                self.blank(types.span.start, types.span.end);
            }
        }
        self.visit_formal_parameters(&it.params);
        self.visit_arrow_function_body(&it.body);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        let pattern = it.pattern.span();
        self.blank_modifiers(it.span.start, pattern.start, None);
        if it.optional {
            self.blank_sign(pattern.end, '?');
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.blank_sign(it.id.span().end, '!');
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.r#abstract {
            self.blank_modifiers(it.span.start, it.span.start + 1, None);
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let heritage = it.heritage.as_ref().map(|heritage| {
                heritage.type_arguments.as_ref().map_or(heritage.expression.span().end, |types| types.span.end)
            });
            let types = it.type_parameters.as_ref().map(|types| types.span.end);
            let before = heritage.or(types).or(it.id.as_ref().map(|id| id.span.end)).unwrap_or(it.span.start);
            if let Some(implements) = self.words(before, first.span.start).last() {
                self.blank(implements.start, last.span.end);
            }
        }
        if let Some(types) = &it.type_parameters {
            self.visit_ts_type_parameter_declaration(types);
        }
        if let Some(heritage) = &it.heritage {
            self.visit_class_heritage(heritage);
        }
        self.visit_decorators(&it.decorators);
        let outer = std::mem::replace(&mut self.is_derived, it.heritage.is_some());
        self.visit_class_body(&it.body);
        self.is_derived = outer;
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        let is_removed = match it {
            ClassElement::TSIndexSignature(_) => true,
            ClassElement::MethodDefinition(one) => {
                one.r#type == MethodDefinitionType::TSAbstractMethodDefinition || one.value.body.is_none()
            }
            ClassElement::PropertyDefinition(one) => {
                let has_effect =
                    one.key.is_private_identifier() || one.key.as_expression().is_some_and(|key| !key.is_literal());
                one.declare
                    || one.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
                    // A field with only a declaration must not overwrite the base class's value.
                    || one.value.is_none() && !has_effect
            }
            _ => false,
        };
        if is_removed {
            self.remove(it.span());
            return;
        }
        walk::walk_class_element(self, it);
        self.end(it.span().end);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        let key = it.key.span();
        self.blank_modifiers(it.span.start, key.start, Some(';'));
        if it.optional {
            self.blank_mark(key, it.computed);
        }
        if it.kind.is_constructor() {
            self.assign_parameters(&it.value);
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        let key = it.key.span();
        self.blank_modifiers(it.span.start, key.start, Some(';'));
        if it.optional || it.definite {
            self.blank_mark(key, it.computed);
        }
        walk::walk_property_definition(self, it);
    }

    fn visit_accessor_property(&mut self, it: &AccessorProperty<'a>) {
        self.refuse(it.span, "`accessor` isn't supported; write a getter and a setter instead");
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse(it.span, "decorators aren't supported; call the function where its result is needed instead");
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        let name = it.id.name;
        let message = format!("`enum` isn't supported; write `const {name} = {{ … }} as const` instead");
        self.refuse(it.span, &message);
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        let message = "a namespace with values isn't supported; write a file of its own, or an object, instead";
        self.refuse(it.span, message);
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        self.refuse(it.span, "`import … = …` isn't supported; write `import … from …` or `const … = …` instead");
    }

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.refuse(it.span, "`export = …` isn't supported; write `export default …` instead");
    }
}
