// Shared code of food_catcher and cherry_picker: actors gather food, carry it home, and avoid collisions.

#ifndef FORAGING_H
#define FORAGING_H

#include "colosseum.h"

// A point of the map.
struct point {
    double x, y;
};

// An actor, a base, or a source of food. Texts belong to the state.
struct entity {
    const char *id, *owner_id;
    struct point position;
    double food, health, max_health;
    double quantity;  // of a source
    double claimed;   // of a source: the part that our actors aim for
    double gap;       // of an actor: the distance that others must keep at the end of the epoch
};

struct entities {
    struct entity *items;
    size_t count;
};

// Returns the distance of two points.
double distance(struct point a, struct point b);

// Reads the entities of a list in a state: of one owner, of all others, or all. The caller frees `items`.
enum whose { OURS, THEIRS, ALL };
struct entities read_entities(const struct json *list, const char *me, enum whose whose);

// Sorts by a key, the smallest first. Equal elements keep their order.
void sort_entities(struct entities entities, double (*key)(const struct entity *));

// Writes actions for all actors and bases with a task, and returns the actors without one. The caller frees `items`.
struct entities forage(const char *me, const struct json *state, const struct json *config, struct text *actions);

#endif
