// See foraging.h.

#include "foraging.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The load with which an actor goes home. Loads are unlimited, but they don't count and can be lost.
static const double LOAD = 40.0;

// The food that actors leave in a source, because a source grows by a share of its content.
static const double LEAVE = 15.0;

// Tolerance for rounding errors.
static const double SLACK = 0.01;

// Directions around an obstacle, as cosine and sine: straight on, then 45, 90 and 135 degrees to either side. All actors try the
// same side first, so two that meet head-on pass each other.
#define HALF 0.70710678118654752440
static const struct point TURNS[] = {{1, 0}, {HALF, -HALF}, {HALF, HALF}, {0, -1}, {0, 1}, {-HALF, -HALF}, {-HALF, HALF}};
#define TURNS_COUNT (sizeof TURNS / sizeof TURNS[0])

// The shared data of a decision.
struct view {
    const struct json *config;
    double epochs_left;
    struct entities everybody, bases, foods;
};

double distance(struct point a, struct point b) {
    return sqrt((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y));
}

struct entities read_entities(const struct json *list, const char *me, enum whose whose) {
    struct entities entities = {new_items(list->count, sizeof *entities.items), 0};
    for (const struct json *item = list->first; item != NULL; item = item->next) {
        const struct json *position = json_get(item, "position");
        bool is_ours = strcmp(json_text(item, "owner_id"), me) == 0;
        if ((whose == OURS && !is_ours) || (whose == THEIRS && is_ours)) continue;
        entities.items[entities.count++] = (struct entity){
            .id = json_text(item, "id"),
            .owner_id = json_text(item, "owner_id"),
            .position = {json_item(position, 0)->number, json_item(position, 1)->number},
            .food = json_number(item, "food"),
            .health = json_number(item, "health"),
            .max_health = json_number(item, "max_health"),
            .quantity = json_number(item, "quantity"),
        };
    }
    return entities;
}

void sort_entities(struct entities entities, double (*key)(const struct entity *)) {
    // qsort may reorder equal elements, and the lists are short.
    for (size_t i = 1; i < entities.count; i++) {
        struct entity entity = entities.items[i];
        size_t at = i;
        for (; at > 0 && key(&entities.items[at - 1]) > key(&entity); at--) entities.items[at] = entities.items[at - 1];
        entities.items[at] = entity;
    }
}

static double fullest_first(const struct entity *actor) {
    return -actor->food;
}

static void act(struct text *actions, const char *action, const struct entity *actor, const char *key, const char *id) {
    action_begin(actions, action);
    action_text(actions, "actor_id", actor->id);
    if (key != NULL) action_text(actions, key, id);
    action_end(actions);
}

static const struct entity *nearest(struct entities entities, struct point from) {
    const struct entity *best = NULL;
    for (size_t i = 0; i < entities.count; i++) {
        const struct entity *entity = &entities.items[i];
        if (best == NULL || distance(entity->position, from) < distance(best->position, from)) best = entity;
    }
    return best;
}

// Decides an actor's action without regard to collisions: an action, which is written, a target, which isn't yet, or nothing.
enum choice { NOTHING, ACTED, GO };
static enum choice choose(struct view *view, const struct entity *actor, struct text *actions, struct point *target) {
    const struct json *config = view->config;
    const struct entity *base = nearest(view->bases, actor->position);
    if (base == NULL && actor->food >= json_number(config, "make_base_cost")) {
        act(actions, "make_base", actor, NULL, NULL);
        return ACTED;
    }
    double way_home = base != NULL ? distance(actor->position, base->position) : 0;
    if (base != NULL && way_home <= json_number(config, "deposit_food_max_distance")) {
        bool is_hurt = actor->health < actor->max_health / 2 && base->food > 0;
        if (actor->food > 0 || is_hurt) {
            act(actions, actor->food > 0 ? "deposit_food" : "heal", actor, "base_id", base->id);
            return ACTED;
        }
    }
    // Without a base there is no home, and a new base is paid from the actor's load.
    double room = (base != NULL ? LOAD : json_number(config, "make_base_cost")) - actor->food;
    double speed = json_number(config, "actor_speed");
    bool is_late = base != NULL && way_home / speed + 10 >= view->epochs_left;
    struct entity *best = NULL;
    double best_rate = 0, best_gain = 0;
    for (size_t i = 0; i < view->foods.count && room > 0 && !is_late; i++) {
        struct entity *food = &view->foods.items[i];
        double gain = fmin(room, food->quantity - LEAVE - food->claimed);
        double way = distance(actor->position, food->position);
        double way_back = base != NULL ? distance(food->position, base->position) : 0;
        double rate = gain / (1 + (way + way_back) / speed + gain / json_number(config, "take_food_speed"));
        if (rate > best_rate) {
            best = food;
            best_rate = rate;
            best_gain = gain;
        }
    }
    if (best != NULL) {
        best->claimed += best_gain;
        if (distance(actor->position, best->position) <= json_number(config, "take_food_max_distance")) {
            act(actions, "take_food", actor, "food_id", best->id);
            return ACTED;
        }
        *target = best->position;
        return GO;
    }
    if (base == NULL || actor->food <= 0) return NOTHING;
    *target = base->position;
    return GO;
}

// True if no other actor than `actor` will be too close to a point.
static bool is_free(struct entities everybody, const struct entity *actor, struct point point) {
    for (size_t i = 0; i < everybody.count; i++) {
        const struct entity *other = &everybody.items[i];
        bool is_other = actor == NULL || strcmp(other->id, actor->id) != 0;
        if (is_other && distance(point, other->position) < other->gap) return false;
    }
    return true;
}

// Finds the next position on the way to a target at a safe distance from others. False to wait.
static bool step(const struct view *view, const struct entity *actor, struct point target, struct point *place) {
    double way = distance(actor->position, target);
    if (way == 0) return false;
    double length = fmin(way, json_number(view->config, "actor_speed"));
    double dx = (target.x - actor->position.x) / way * length, dy = (target.y - actor->position.y) / way * length;
    for (size_t i = 0; i < TURNS_COUNT; i++) {
        double x = actor->position.x + dx * TURNS[i].x - dy * TURNS[i].y;
        double y = actor->position.y + dx * TURNS[i].y + dy * TURNS[i].x;
        place->x = fmin(fmax(x, 0), json_number(view->config, "grid_width"));
        place->y = fmin(fmax(y, 0), json_number(view->config, "grid_height"));
        if (is_free(view->everybody, actor, *place)) return true;
    }
    return false;
}

struct entities forage(const char *me, const struct json *state, const struct json *config, struct text *actions) {
    double n_epochs = json_number(config, "n_epochs");
    struct view view = {
        .config = config,
        .epochs_left = n_epochs > 0 ? n_epochs - json_number(state, "epoch") : INFINITY,
        .everybody = read_entities(json_get(state, "actors"), me, ALL),
        .bases = read_entities(json_get(state, "bases"), me, OURS),
        .foods = read_entities(json_get(state, "foods"), me, ALL),
    };
    // Actors with larger loads choose first and so have the right of way.
    struct entities actors = read_entities(json_get(state, "actors"), me, OURS);
    sort_entities(actors, fullest_first);
    // Of two actors that get too close, one dies. Our own moves are known; an opponent's actor may come a step nearer.
    double gap = 2 * json_number(config, "actor_radius") + SLACK;
    for (size_t i = 0; i < view.everybody.count; i++) {
        struct entity *actor = &view.everybody.items[i];
        actor->gap = strcmp(actor->owner_id, me) == 0 ? gap : gap + json_number(config, "actor_speed");
    }
    struct entities idle = {new_items(actors.count, sizeof *idle.items), 0};
    for (size_t i = 0; i < actors.count; i++) {
        const struct entity *actor = &actors.items[i];
        struct point target, place;
        enum choice choice = choose(&view, actor, actions, &target);
        if (choice == ACTED) continue;
        if (choice == NOTHING || !step(&view, actor, target, &place)) {
            idle.items[idle.count++] = *actor;
            continue;
        }
        action_begin(actions, "move");
        action_text(actions, "actor_id", actor->id);
        action_point(actions, "target", place.x, place.y);
        action_end(actions);
        for (size_t j = 0; j < view.everybody.count; j++) {
            if (strcmp(view.everybody.items[j].id, actor->id) == 0) view.everybody.items[j].position = place;
        }
    }
    // A new actor must bring in more than it costs, so their number is limited, and spawning stops in time.
    double cost = json_number(config, "spawn_actor_cost");
    bool is_worth_it = actors.count < 2 * view.foods.count && view.epochs_left > 3 * cost;
    for (size_t i = 0; i < view.bases.count && is_worth_it; i++) {
        const struct entity *base = &view.bases.items[i];
        if (base->food < cost || !is_free(view.everybody, NULL, base->position)) continue;
        action_begin(actions, "spawn");
        action_text(actions, "base_id", base->id);
        action_end(actions);
    }
    free(actors.items);
    free(view.everybody.items);
    free(view.bases.items);
    free(view.foods.items);
    return idle;
}
