// Food catcher: gathers food; actors without a task attack enemies in range. See foraging.c.

#include <stdlib.h>

#include "foraging.h"

static double weakest_first(const struct entity *entity) {
    return entity->health;
}

// Writes an attack on the first target in range, if there is one.
static bool attack(const struct entity *actor, struct entities targets, double range, struct text *actions) {
    for (size_t i = 0; i < targets.count; i++) {
        const struct entity *target = &targets.items[i];
        if (distance(actor->position, target->position) > range) continue;
        action_begin(actions, "attack");
        action_text(actions, "actor_id", actor->id);
        action_text(actions, "target", target->id);
        action_end(actions);
        return true;
    }
    return false;
}

// Writes actions for our actors and bases.
static void decide(const char *me, const struct json *state, const struct json *config, struct text *actions) {
    struct entities idle = forage(me, state, config, actions);
    // A destroyed base loses its food, so bases come first, and the weakest of each kind.
    struct entities bases = read_entities(json_get(state, "bases"), me, THEIRS);
    struct entities actors = read_entities(json_get(state, "actors"), me, THEIRS);
    sort_entities(bases, weakest_first);
    sort_entities(actors, weakest_first);
    double range = json_number(config, "attack_range");
    for (size_t i = 0; i < idle.count; i++) {
        if (!attack(&idle.items[i], bases, range, actions)) attack(&idle.items[i], actors, range, actions);
    }
    free(idle.items);
    free(bases.items);
    free(actors.items);
}

int main(void) {
    return colosseum_run("food-catcher-c", "1", decide);
}
