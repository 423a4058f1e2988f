// Snake: goes to the nearest food from which it can still reach its own tail, which it can follow forever.

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "colosseum.h"

static const struct move {
    const char *name;
    int dx, dy;
} MOVES[4] = {{"UP", 0, -1}, {"RIGHT", 1, 0}, {"DOWN", 0, 1}, {"LEFT", -1, 0}};

// Number of cells that a search visits beyond the snake's length, so that a step takes milliseconds on any grid.
#define LOOK 1000

// The widest supported grid.
#define MAX_SIDE 4096

struct cell {
    int x, y;
};

// A map of the grid: the content of each cell, and its distance in the search.
struct grid {
    int width, height;
    char *taken, *food;
    int *distances;
    struct cell *queue;
    struct cell tail;  // ours
    int length;        // ours
};

// Food eaten up to the previous epoch.
static double eaten;

static struct cell read_cell(const struct json *value) {
    double x = json_item(value, 0)->number, y = json_item(value, 1)->number;
    bool is_sane = x >= -1 && x <= MAX_SIDE && y >= -1 && y <= MAX_SIDE;
    return is_sane ? (struct cell){(int)x, (int)y} : (struct cell){-1, -1};
}

static bool is_inside(const struct grid *grid, struct cell cell) {
    return cell.x >= 0 && cell.x < grid->width && cell.y >= 0 && cell.y < grid->height;
}

static size_t at(const struct grid *grid, struct cell cell) {
    return (size_t)cell.y * (size_t)grid->width + (size_t)cell.x;
}

static bool is_free(const struct grid *grid, struct cell cell) {
    return is_inside(grid, cell) && !grid->taken[at(grid, cell)];
}

// Returns the distance of two cells on an empty grid, in moves.
static int steps(struct cell a, struct cell b) {
    return abs(a.x - b.x) + abs(a.y - b.y);
}

// The result of a search: a path to our tail, the number of free cells, and the distance to the nearest food.
struct view {
    bool is_way_out;
    int room, nearest;
};

// Searches from a cell. Stops when the result is known.
static struct view explore(struct grid *grid, struct cell start, const struct json *foods) {
    size_t cells = (size_t)grid->width * (size_t)grid->height;
    for (size_t i = 0; i < cells; i++) grid->distances[i] = -1;
    int found = 1, beeline = INT_MAX, nearest = -1;
    bool is_way_out = steps(start, grid->tail) == 0;
    grid->queue[0] = start;
    grid->distances[at(grid, start)] = 0;
    for (int next = 0; next < found && found < LOOK + grid->length && !(nearest >= 0 && is_way_out); next++) {
        struct cell cell = grid->queue[next];
        int distance = grid->distances[at(grid, cell)];
        if (nearest < 0 && grid->food[at(grid, cell)]) nearest = distance;
        for (int i = 0; i < 4; i++) {
            struct cell after = {cell.x + MOVES[i].dx, cell.y + MOVES[i].dy};
            // A tail that stays in this step also stays in the next one if we eat again.
            bool stays = distance == 0 && grid->food[at(grid, start)] && !is_free(grid, grid->tail);
            if (steps(after, grid->tail) == 0 && !stays) is_way_out = true;
            if (is_free(grid, after) && grid->distances[at(grid, after)] < 0) {
                grid->distances[at(grid, after)] = distance + 1;
                grid->queue[found++] = after;
            }
        }
    }
    if (nearest < 0) {
        // Without food in the search: the direct distance, plus a constant, so that food in the search counts as nearer.
        for (const struct json *food = foods->first; food != NULL; food = food->next) {
            int way = steps(start, read_cell(food));
            if (way < beeline) beeline = way;
        }
        nearest = LOOK + (beeline < INT_MAX ? beeline : 0);
    }
    return (struct view){is_way_out, is_way_out ? grid->length : found, nearest};
}

// True if another living snake's head is one step away from a cell, so that both could die.
static bool is_contested(const struct json *snakes, const char *me, struct cell cell) {
    for (const struct json *snake = snakes->first; snake != NULL; snake = snake->next) {
        bool is_other = strcmp(snake->key, me) != 0 && json_number(snake, "alive") == 1;
        if (is_other && steps(cell, read_cell(json_get(snake, "head_position"))) == 1) return true;
    }
    return false;
}

// Returns the most promising move, or NULL if all are deadly.
static const char *best_move(struct grid *grid, const char *me, const struct json *state) {
    const struct json *snakes = json_get(state, "snakes"), *own = json_get(snakes, me);
    struct cell head = read_cell(json_get(own, "head_position"));
    const char *best = NULL;
    int best_outlook[5] = {0};
    for (int i = 0; i < 4; i++) {
        struct cell cell = {head.x + MOVES[i].dx, head.y + MOVES[i].dy};
        if (!is_free(grid, cell)) continue;
        struct view view = explore(grid, cell, json_get(state, "foods"));
        int room = view.room < grid->length ? view.room : grid->length;
        // The first difference decides.
        int outlook[5] = {view.is_way_out, room, !is_contested(snakes, me, cell), -view.nearest, view.room};
        int item = 0;
        while (item < 4 && outlook[item] == best_outlook[item]) item++;
        if (best == NULL || outlook[item] > best_outlook[item]) {
            best = MOVES[i].name;
            memcpy(best_outlook, outlook, sizeof outlook);
        }
    }
    return best;
}

static void mark(const struct grid *grid, char *map, const struct json *cells) {
    for (const struct json *value = cells->first; value != NULL; value = value->next) {
        struct cell cell = read_cell(value);
        if (is_inside(grid, cell)) map[at(grid, cell)] = 1;
    }
}

static void decide(const char *me, const struct json *state, const struct json *config, struct text *actions) {
    (void)config;
    const struct json *snakes = json_get(state, "snakes"), *size = json_get(state, "grid");
    double width = json_number(size, "width"), height = json_number(size, "height");
    bool is_sane = width >= 1 && width <= MAX_SIDE && height >= 1 && height <= MAX_SIDE;
    if (!is_sane || json_number(json_get(snakes, me), "alive") != 1) return;
    size_t cells = (size_t)width * (size_t)height;
    struct grid grid = {
        .width = (int)width,
        .height = (int)height,
        .taken = new_items(cells, sizeof *grid.taken),
        .food = new_items(cells, sizeof *grid.food),
        .distances = new_items(cells, sizeof *grid.distances),
        .queue = new_items(cells, sizeof *grid.queue),
    };
    mark(&grid, grid.food, json_get(state, "foods"));
    for (const struct json *snake = snakes->first; snake != NULL; snake = snake->next) {
        // Other snakes' tails count as occupied: most of them move on, but the tail of a snake that has just eaten stays.
        if (json_number(snake, "alive") == 1) mark(&grid, grid.taken, json_get(snake, "positions"));
    }
    const struct json *positions = json_get(json_get(snakes, me), "positions");
    grid.length = (int)positions->count;
    grid.tail = read_cell(json_item(positions, positions->count - 1));
    double before = eaten;
    eaten = json_number(json_get(state, "score"), me);
    if (eaten == before && is_inside(&grid, grid.tail)) grid.taken[at(&grid, grid.tail)] = 0;
    const char *best = best_move(&grid, me, state);
    if (best != NULL) {
        action_begin(actions, "move");
        action_text(actions, "move", best);
        action_end(actions);
    }
    free(grid.taken);
    free(grid.food);
    free(grid.distances);
    free(grid.queue);
}

int main(void) {
    return colosseum_run("snake-c", "1", decide);
}
