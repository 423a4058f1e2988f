// See colosseum.h.

#include "colosseum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Number of bytes per read.
#define READ_SIZE 65536

void *new_items(size_t count, size_t size) {
    void *items = calloc(count > 0 ? count : 1, size);
    if (items == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    return items;
}

// Makes room for `more` bytes and a NUL.
static void text_reserve(struct text *text, size_t more) {
    if (text->capacity - text->length > more) return;
    size_t capacity = 2 * text->capacity + more + 256;
    char *bytes = realloc(text->bytes, capacity);
    if (bytes == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    text->bytes = bytes;
    text->capacity = capacity;
}

static void text_add(struct text *text, const char *more) {
    size_t length = strlen(more);
    text_reserve(text, length);
    memcpy(text->bytes + text->length, more, length + 1);
    text->length += length;
}

// Adds a text as a JSON string.
static void text_quote(struct text *text, const char *value) {
    text_add(text, "\"");
    for (; *value != '\0'; value++) {
        char escaped[8] = {*value};
        if (*value == '"' || *value == '\\') snprintf(escaped, sizeof escaped, "\\%c", *value);
        else if ((unsigned char)*value < 0x20) snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)*value);
        text_add(text, escaped);
    }
    text_add(text, "\"");
}

static void text_member(struct text *text, const char *key, const char *value) {
    text_add(text, text->length > 0 && text->bytes[text->length - 1] != '{' ? "," : "");
    text_quote(text, key);
    text_add(text, ":");
    text_quote(text, value);
}

void action_begin(struct text *actions, const char *action) {
    text_add(actions, actions->length > 0 ? ",{" : "{");
    text_member(actions, "action", action);
}

void action_text(struct text *actions, const char *key, const char *value) {
    text_member(actions, key, value);
}

void action_point(struct text *actions, const char *key, double x, double y) {
    char point[80];
    // 17 digits preserve every number.
    snprintf(point, sizeof point, ":[%.17g,%.17g]", x, y);
    text_add(actions, ",");
    text_quote(actions, key);
    text_add(actions, point);
}

void action_end(struct text *actions) {
    text_add(actions, "}");
}

// Reads a line of any length. False at the end of stdin.
static bool read_line(struct text *line) {
    line->length = 0;
    do {
        text_reserve(line, READ_SIZE);
        char *rest = line->bytes + line->length;
        if (fgets(rest, READ_SIZE, stdin) == NULL) return line->length > 0;
        line->length += strlen(rest);
    } while (line->length == 0 || line->bytes[line->length - 1] != '\n');
    return true;
}

int colosseum_run(const char *name, const char *version, decide_function *decide) {
    struct text line = {0}, reply = {0}, actions = {0};
    // The message with the id and the config, and the latest one.
    struct json_document start = {0}, message = {0};
    json_free(&start);
    while (read_line(&line)) {
        if (!json_read(&message, line.bytes, line.length)) {
            fprintf(stderr, "not JSON: %.80s\n", line.bytes);
            continue;
        }
        if (json_has(message.root, "stop")) break;
        reply.length = 0;
        text_add(&reply, "{");
        if (json_has(message.root, "ping")) text_member(&reply, "pong", "pong");
        bool is_start = json_has(message.root, "set_agent_id"), is_state = json_has(message.root, "world_state");
        if (is_start) json_read(&start, line.bytes, line.length);
        const char *me = json_text(start.root, "set_agent_id");
        if (is_start || is_state) text_member(&reply, "agent_id", me);
        if (is_start) {
            text_member(&reply, "agent_name", name);
            text_member(&reply, "agent_version", version);
        }
        if (is_state) {
            actions.length = 0;
            text_add(&actions, "");
            decide(me, json_get(message.root, "world_state"), json_get(start.root, "config"), &actions);
            text_add(&reply, ",\"actions\":[");
            text_add(&reply, actions.bytes);
            text_add(&reply, "]");
        }
        if (reply.length > 1) {
            text_add(&reply, "}\n");
            // One write and a flush, because the arena doesn't receive an answer in a buffer.
            fwrite(reply.bytes, 1, reply.length, stdout);
            fflush(stdout);
        }
    }
    json_free(&start);
    json_free(&message);
    free(line.bytes);
    free(reply.bytes);
    free(actions.bytes);
    return EXIT_SUCCESS;
}
