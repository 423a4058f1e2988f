// What food_catcher and cherry_picker have in common: actors gather food, carry it home, and keep out of each other's way.

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
    double claimed;   // of a source: how much of it our actors are after
    double gap;       // of an actor: how far from it nobody else must be at the end of the epoch
};

struct entities {
    struct entity *items;
    size_t count;
};

// How far two points are from each other.
double distance(struct point a, struct point b);

// The entities in a list of a state; of one owner only, of all others, or all. The caller frees `items`.
enum whose { OURS, THEIRS, ALL };
struct entities read_entities(const struct json *list, const char *me, enum whose whose);

// Sorts by a key, the least first. Those that are equal keep their order.
void sort_entities(struct entities entities, double (*key)(const struct entity *));

// Writes actions for all actors and bases that have something to do, and returns the actors that haven't. The caller frees `items`.
struct entities forage(const char *me, const struct json *state, const struct json *config, struct text *actions);

#endif
