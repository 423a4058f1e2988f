// See json.h. Values are counted first, so that one allocation is enough. Texts are decoded in place, because a decoded text
// is never longer.

#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Maximum depth: deeper than any message, and safe for the stack.
#define MAX_DEPTH 64

static const struct json nothing = {.kind = JSON_NULL, .text = "", .key = ""};

// The parser's position. `at` never exceeds `end`, where there is a NUL.
struct reader {
    char *at;
    const char *end;
    struct json_document *document;
};

static bool read_value(struct reader *reader, struct json *value, int depth);

static void skip_space(struct reader *reader) {
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r') reader->at++;
}

static bool skip(struct reader *reader, char expected) {
    if (*reader->at != expected) return false;
    reader->at++;
    return true;
}

static bool skip_word(struct reader *reader, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0) return false;
    reader->at += length;
    return true;
}

static bool skip_digits(struct reader *reader) {
    const char *start = reader->at;
    while (*reader->at >= '0' && *reader->at <= '9') reader->at++;
    return reader->at > start;
}

// strtod accepts more than JSON allows, so the form is checked first.
static bool read_number(struct reader *reader, struct json *value) {
    const char *start = reader->at;
    skip(reader, '-');
    if (!skip(reader, '0') && !skip_digits(reader)) return false;
    if (skip(reader, '.') && !skip_digits(reader)) return false;
    if (skip(reader, 'e') || skip(reader, 'E')) {
        if (!skip(reader, '-')) skip(reader, '+');
        if (!skip_digits(reader)) return false;
    }
    value->kind = JSON_NUMBER;
    value->number = strtod(start, NULL);
    return isfinite(value->number);
}

// Parses the four hexadecimal digits of a \u escape; -1 on errors.
static long read_hex(struct reader *reader) {
    long code = 0;
    for (int digit = 0; digit < 4; digit++, reader->at++) {
        char c = *reader->at;
        if (c >= '0' && c <= '9') code = code * 16 + (c - '0');
        else if (c >= 'a' && c <= 'f') code = code * 16 + (c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') code = code * 16 + (c - 'A' + 10);
        else return -1;
    }
    return code;
}

// Parses an escape after its backslash; -1 on errors.
static long read_escape(struct reader *reader) {
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char name = *reader->at;
    const char *found = name == '\0' ? NULL : strchr(names, name);
    if (found != NULL) {
        reader->at++;
        return meant[found - names];
    }
    if (!skip(reader, 'u')) return -1;
    long code = read_hex(reader);
    if (code >= 0xD800 && code < 0xDC00 && reader->at[0] == '\\' && reader->at[1] == 'u') {
        char *before = reader->at;
        reader->at += 2;
        long low = read_hex(reader);
        if (low >= 0xDC00 && low < 0xE000) return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        reader->at = before;
    }
    // Lone surrogates, and a NUL, which would end a text early, become the replacement character.
    return code == 0 || (code >= 0xD800 && code < 0xE000) ? 0xFFFD : code;
}

static char *write_utf8(char *out, long code) {
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | (code >> 6));
        *out++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | (code >> 12));
        *out++ = (char)(0x80 | ((code >> 6) & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    } else {
        *out++ = (char)(0xF0 | (code >> 18));
        *out++ = (char)(0x80 | ((code >> 12) & 0x3F));
        *out++ = (char)(0x80 | ((code >> 6) & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    }
    return out;
}

static bool read_text(struct reader *reader, const char **text) {
    if (!skip(reader, '"')) return false;
    char *out = reader->at;
    *text = out;
    while (*reader->at != '"') {
        // The NUL at the end is a control character, too.
        if ((unsigned char)*reader->at < 0x20) return false;
        if (*reader->at != '\\') {
            *out++ = *reader->at++;
            continue;
        }
        reader->at++;
        long code = read_escape(reader);
        if (code < 0) return false;
        out = write_utf8(out, code);
    }
    reader->at++;
    *out = '\0';
    return true;
}

// Parses a list or an object; members of objects have keys.
static bool read_children(struct reader *reader, struct json *value, char closing, int depth) {
    value->kind = closing == ']' ? JSON_LIST : JSON_OBJECT;
    reader->at++;
    skip_space(reader);
    if (skip(reader, closing)) return true;
    struct json **link = &value->first;
    do {
        struct json *child = &reader->document->values[reader->document->used++];
        *child = nothing;
        if (closing == '}') {
            skip_space(reader);
            if (!read_text(reader, &child->key)) return false;
            skip_space(reader);
            if (!skip(reader, ':')) return false;
        }
        if (!read_value(reader, child, depth)) return false;
        *link = child;
        link = &child->next;
        value->count++;
        skip_space(reader);
    } while (skip(reader, ','));
    return skip(reader, closing);
}

static bool read_value(struct reader *reader, struct json *value, int depth) {
    skip_space(reader);
    switch (*reader->at) {
        case '[': return depth < MAX_DEPTH && read_children(reader, value, ']', depth + 1);
        case '{': return depth < MAX_DEPTH && read_children(reader, value, '}', depth + 1);
        case '"': value->kind = JSON_TEXT; return read_text(reader, &value->text);
        case 't': value->kind = JSON_BOOLEAN; value->number = 1; return skip_word(reader, "true");
        case 'f': value->kind = JSON_BOOLEAN; return skip_word(reader, "false");
        case 'n': return skip_word(reader, "null");
        default: return read_number(reader, value);
    }
}

bool json_read(struct json_document *document, const char *text, size_t length) {
    json_free(document);
    // Each value except the outermost follows a bracket, a brace or a comma.
    size_t most = 1;
    for (size_t i = 0; i < length; i++) most += text[i] == '[' || text[i] == '{' || text[i] == ',';
    document->text = malloc(length + 1);
    document->values = malloc(most * sizeof *document->values);
    if (document->text == NULL || document->values == NULL) {
        json_free(document);
        return false;
    }
    memcpy(document->text, text, length);
    document->text[length] = '\0';
    struct reader reader = {document->text, document->text + length, document};
    struct json *root = &document->values[document->used++];
    *root = nothing;
    bool is_json = read_value(&reader, root, 0);
    skip_space(&reader);
    if (!is_json || reader.at != reader.end) {
        json_free(document);
        return false;
    }
    document->root = root;
    return true;
}

void json_free(struct json_document *document) {
    free(document->text);
    free(document->values);
    *document = (struct json_document){.root = &nothing};
}

const struct json *json_get(const struct json *object, const char *key) {
    for (const struct json *member = object->first; member != NULL && object->kind == JSON_OBJECT; member = member->next) {
        if (strcmp(member->key, key) == 0) return member;
    }
    return &nothing;
}

bool json_has(const struct json *object, const char *key) {
    return json_get(object, key) != &nothing;
}

const struct json *json_item(const struct json *list, size_t index) {
    const struct json *item = list->kind == JSON_LIST ? list->first : NULL;
    while (item != NULL && index-- > 0) item = item->next;
    return item != NULL ? item : &nothing;
}

double json_number(const struct json *object, const char *key) {
    return json_get(object, key)->number;
}

const char *json_text(const struct json *object, const char *key) {
    return json_get(object, key)->text;
}
