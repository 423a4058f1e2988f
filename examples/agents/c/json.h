// A small JSON parser. Missing values read as null, and null as 0, "" or nothing, so that chained look-ups need no checks.

#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

enum json_kind { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };

// A value. Its children, if it is a list or an object, are linked: for (item = value->first; item; item = item->next).
struct json {
    enum json_kind kind;
    double number;     // the number; 1 for true
    const char *text;  // UTF-8; never NULL
    const char *key;   // the name of a member of an object; never NULL
    size_t count;      // number of children
    struct json *first;
    struct json *next;
};

// A parsed text, and the memory of its values. Initialize it with zeros.
struct json_document {
    const struct json *root;
    char *text;
    struct json *values;
    size_t used;
};

// Parses a text, and frees the previous one. Returns false, with a null root, if it isn't JSON.
bool json_read(struct json_document *document, const char *text, size_t length);

// Frees the memory of a document, which can then be reused.
void json_free(struct json_document *document);

// Returns a member of an object.
const struct json *json_get(const struct json *object, const char *key);

// True if an object has the member.
bool json_has(const struct json *object, const char *key);

// Returns an item of a list, counted from 0.
const struct json *json_item(const struct json *list, size_t index);

// Returns a numeric member, or 0.
double json_number(const struct json *object, const char *key);

// Returns a text member, or "".
const char *json_text(const struct json *object, const char *key);

#endif
