// A small reader of JSON. What is missing reads as null, and null as 0, "" or nothing, so that chains of look-ups need no checks.

#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

enum json_kind { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT };

// A value. Its children, if it is a list or an object, are linked: for (item = value->first; item; item = item->next).
struct json {
    enum json_kind kind;
    double number;     // a number; 1 if it is true
    const char *text;  // UTF-8; never NULL
    const char *key;   // its name, if it is a member of an object; never NULL
    size_t count;      // how many children
    struct json *first;
    struct json *next;
};

// A text that was read, and the memory of its values. Begins as zeros.
struct json_document {
    const struct json *root;
    char *text;
    struct json *values;
    size_t used;
};

// Reads a text, and forgets what was read before. False, and a root that is null, if it isn't JSON.
bool json_read(struct json_document *document, const char *text, size_t length);

// Frees the memory of a document, which can be used again.
void json_free(struct json_document *document);

// A member of an object.
const struct json *json_get(const struct json *object, const char *key);

// Whether an object has a member.
bool json_has(const struct json *object, const char *key);

// An item of a list, from 0.
const struct json *json_item(const struct json *list, size_t index);

// A member that is a number, or 0.
double json_number(const struct json *object, const char *key);

// A member that is a text, or "".
const char *json_text(const struct json *object, const char *key);

#endif
