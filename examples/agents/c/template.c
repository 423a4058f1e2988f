// An agent to start from. It does nothing yet, properly.

#include <stdio.h>

#include "colosseum.h"

// What to do in this epoch.
static void decide(const char *me, const struct json *state, const struct json *config, struct text *actions) {
    fprintf(stderr, "%s sees %zu things in epoch %.0f\n", me, state->count, json_number(state, "epoch"));
    // Fill this in. docs/agents.md has the states and the actions of each game; one of snake is
    // action_begin(actions, "move"); action_text(actions, "move", "UP"); action_end(actions);
    (void)config;
    (void)actions;
}

int main(void) {
    return colosseum_run("template-c", "1", decide);
}
