// Cherry picker: gathers food in a world of its own. See foraging.c.

#include <stdlib.h>

#include "foraging.h"

// Writes actions for our actors and bases.
static void decide(const char *me, const struct json *state, const struct json *config, struct text *actions) {
    struct entities idle = forage(me, state, config, actions);
    free(idle.items);
}

int main(void) {
    return colosseum_run("cherry-picker-c", "1", decide);
}
