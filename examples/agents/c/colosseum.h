// The protocol: JSON objects on lines, read from stdin and answered on stdout. What to do in a game is the agent's.

#ifndef COLOSSEUM_H
#define COLOSSEUM_H

#include "json.h"

// A text that grows: the actions of an epoch. Between action_begin and action_end come the members of one action.
struct text {
    char *bytes;
    size_t length;
    size_t capacity;
};

void action_begin(struct text *actions, const char *action);
void action_text(struct text *actions, const char *key, const char *value);
void action_point(struct text *actions, const char *key, double x, double y);
void action_end(struct text *actions);

// Says what to do in an epoch: is given the agent's id, what it sees, and the constants of the game, and writes actions.
typedef void decide_function(const char *me, const struct json *state, const struct json *config, struct text *actions);

// Plays one match. What main has to return.
int colosseum_run(const char *name, const char *version, decide_function *decide);

// Memory for `count` items, all zeros; the agent ends if there is none.
void *new_items(size_t count, size_t size);

#endif
