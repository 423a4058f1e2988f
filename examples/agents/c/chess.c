// Chess, one ply deep: counts captures and the opponent's recaptures. The arena lists the legal moves, so
// this agent knows only the attacks of pieces, not the rules of chess.

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "colosseum.h"

// Pieces as in FEN, from a1 to h8; free squares are '.'. `seen` counts how often our moves have made this board.
struct board {
    char squares[64];
    int seen;
};

// A move in UCI notation, such as e7e8q.
struct move {
    int start, end;
    char promotion;  // 0 for none
};

static int file_of(int square) { return square % 8; }
static int rank_of(int square) { return square / 8; }
static char kind_of(char piece) { return (char)tolower((unsigned char)piece); }
static bool is_white_piece(char piece) { return isupper((unsigned char)piece) != 0; }
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

// Returns the value of a piece in hundredths of a pawn, like all values here.
static int value_of(char piece) {
    switch (kind_of(piece)) {
        case 'p': return 100;
        case 'n': case 'b': return 300;
        case 'r': return 500;
        case 'q': return 900;
        case 'k': return 10000;
        default: return 0;
    }
}

static bool read_move(const char *text, struct move *move) {
    for (int i = 0; i < 4; i += 2) {
        if (text[i] < 'a' || text[i] > 'h' || text[i + 1] < '1' || text[i + 1] > '8') return false;
    }
    *move = (struct move){(text[1] - '1') * 8 + text[0] - 'a', (text[3] - '1') * 8 + text[2] - 'a', text[4]};
    return true;
}

// Reads the board of a FEN, which lists ranks from the eighth to the first.
static struct board read_fen(const char *fen) {
    struct board board = {0};
    memset(board.squares, '.', sizeof board.squares);
    int file = 0, rank = 7;
    for (; *fen != '\0' && *fen != ' '; fen++) {
        if (*fen == '/') {
            file = 0;
            rank--;
        } else if (*fen >= '1' && *fen <= '8') {
            file += *fen - '0';
        } else if (file < 8 && rank >= 0) {
            board.squares[rank * 8 + file++] = *fen;
        }
    }
    return board;
}

// Returns the board after a legal move, and the move's gain.
static struct board play(const struct board *board, struct move move, int *gain) {
    struct board after = *board;
    char piece = after.squares[move.start];
    after.squares[move.start] = '.';
    *gain = value_of(after.squares[move.end]);
    int first = rank_of(move.start) * 8;
    if (kind_of(piece) == 'p' && file_of(move.start) != file_of(move.end) && after.squares[move.end] == '.') {
        // En passant: the captured pawn is beside the start.
        after.squares[first + file_of(move.end)] = '.';
        *gain = value_of('p');
    }
    if (kind_of(piece) == 'k' && abs(move.start - move.end) == 2) {
        // Castling: the rook jumps over the king.
        int corner = first + (move.end > move.start ? 7 : 0);
        after.squares[(move.start + move.end) / 2] = after.squares[corner];
        after.squares[corner] = '.';
    }
    if (move.promotion != '\0') {
        *gain += value_of(move.promotion) - value_of('p');
        piece = is_white_piece(piece) ? (char)toupper((unsigned char)move.promotion) : move.promotion;
    }
    after.squares[move.end] = piece;
    return after;
}

// True if the piece on `start` could capture on `end`.
static bool attacks(const struct board *board, int start, int end) {
    int dx = file_of(end) - file_of(start), dy = rank_of(end) - rank_of(start);
    int far = max(abs(dx), abs(dy)), near = min(abs(dx), abs(dy));
    bool is_straight = near == 0 && far > 0, is_diagonal = near == far && far > 0, slides = false;
    switch (kind_of(board->squares[start])) {
        case 'p': return abs(dx) == 1 && dy == (board->squares[start] == 'P' ? 1 : -1);
        case 'n': return far == 2 && near == 1;
        case 'k': return far == 1;
        case 'b': slides = is_diagonal; break;
        case 'r': slides = is_straight; break;
        case 'q': slides = is_straight || is_diagonal; break;
    }
    if (!slides) return false;
    int stride = (end - start) / far;
    for (int at = start + stride; at != end; at += stride) {
        if (board->squares[at] != '.') return false;
    }
    return true;
}

// Returns the opponent's gain from capturing the piece on a square: 0 if it can't, and less if we could recapture.
static int threat_to(const struct board *board, int at, bool is_white) {
    int least = INT_MAX;
    bool is_guarded = false;
    for (int start = 0; start < 64; start++) {
        if (board->squares[start] == '.' || !attacks(board, start, at)) continue;
        if (is_white_piece(board->squares[start]) == is_white) is_guarded = true;
        else least = min(least, value_of(board->squares[start]));
    }
    return least == INT_MAX ? 0 : value_of(board->squares[at]) - (is_guarded ? least : 0);
}

// Rates a board for the side that has just moved a piece to the square `moved`.
static int outlook(const struct board *board, bool is_white, int moved) {
    int score = 0, threat = 0, check = 0;
    for (int at = 0; at < 64; at++) {
        char piece = board->squares[at], kind = kind_of(piece);
        if (piece == '.') continue;
        if (is_white_piece(piece) != is_white) {
            if (kind == 'k' && attacks(board, moved, at)) check = 20;
            continue;
        }
        // Pieces are stronger in the center, pawns when advanced.
        if (kind == 'p') score += 3 * (is_white ? rank_of(at) : 7 - rank_of(at));
        else if (kind != 'k') score -= abs(2 * file_of(at) - 7) + abs(2 * rank_of(at) - 7);
        if (kind != 'k') threat = max(threat, threat_to(board, at, is_white));
    }
    return score - threat + check;
}

// The boards after our own moves. A repeated board leads to a draw.
static struct board *history;
static size_t history_length;

static struct board *find_seen(const struct board *board) {
    for (size_t i = 0; i < history_length; i++) {
        if (memcmp(history[i].squares, board->squares, sizeof board->squares) == 0) return &history[i];
    }
    return NULL;
}

static void remember(struct board board) {
    struct board *known = find_seen(&board);
    if (known == NULL) {
        struct board *longer = new_items(history_length + 1, sizeof *history);
        if (history_length > 0) memcpy(longer, history, history_length * sizeof *history);
        free(history);
        history = longer;
        known = &history[history_length++];
        *known = board;
        known->seen = 0;
    }
    known->seen++;
}

// Writes the best move.
static void decide(const char *me, const struct json *state, const struct json *config, struct text *actions) {
    (void)me;
    (void)config;
    struct board board = read_fen(json_text(state, "fen")), best_board = board;
    bool is_white = json_number(state, "turn") == 1;
    const char *best = NULL;
    int best_score = 0;
    for (const struct json *item = json_get(state, "legal_moves")->first; item != NULL; item = item->next) {
        struct move move;
        int gain;
        if (!read_move(item->text, &move)) continue;
        struct board after = play(&board, move, &gain);
        const struct board *known = find_seen(&after);
        int score = gain + outlook(&after, is_white, move.end) - (known != NULL ? 50 * known->seen : 0);
        if (best == NULL || score > best_score) {
            best = item->text;
            best_score = score;
            best_board = after;
        }
    }
    if (best == NULL) return;
    remember(best_board);
    action_begin(actions, "move");
    action_text(actions, "move", best);
    action_end(actions);
}

int main(void) {
    int status = colosseum_run("chess-c", "1", decide);
    free(history);
    return status;
}
