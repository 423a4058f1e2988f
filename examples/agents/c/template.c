// A template for an agent. It follows the protocol and takes no actions.

#include <stdio.h>

#include "colosseum.h"

// Writes the actions of this epoch.
static void decide(const char *me, const struct json *state, const struct json *config, struct text *actions) {
    fprintf(stderr, "%s sees %zu things in epoch %.0f\n", me, state->count, json_number(state, "epoch"));
    // Fill this in. docs/agents.md has the states and actions of each game; an action of snake is
    // action_begin(actions, "move"); action_text(actions, "move", "UP"); action_end(actions);
    (void)config;
    (void)actions;
}

int main(void) {
    return colosseum_run("template-c", "1", decide);
}
