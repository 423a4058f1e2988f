// The protocol: JSON objects on lines, read from stdin and answered on stdout. The agent decides the actions.

#ifndef COLOSSEUM_H
#define COLOSSEUM_H

#include "json.h"

// A growing text: the actions of an epoch. The members of one action are between action_begin and action_end.
struct text {
    char *bytes;
    size_t length;
    size_t capacity;
};

void action_begin(struct text *actions, const char *action);
void action_text(struct text *actions, const char *key, const char *value);
void action_point(struct text *actions, const char *key, double x, double y);
void action_end(struct text *actions);

// Decides the actions of an epoch: receives the agent's id, the state, and the constants of the game, and writes actions.
typedef void decide_function(const char *me, const struct json *state, const struct json *config, struct text *actions);

// Plays one match. Returns the exit code for main.
int colosseum_run(const char *name, const char *version, decide_function *decide);

// Allocates `count` items, all zeros; the agent exits if memory is exhausted.
void *new_items(size_t count, size_t size);

#endif
