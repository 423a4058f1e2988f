#!/usr/bin/env node
// Chess, one ply deep: counts captures and the opponent's recaptures. The arena lists the legal moves, so
// this agent knows only the attacks of pieces, not the rules of chess.

"use strict";

const colosseum = require("./colosseum.js");

// The values of pieces in hundredths of a pawn: all values are integers, so a sum doesn't depend on its order.
const VALUES = { p: 100, n: 300, b: 300, r: 500, q: 900, k: 10000 };

// The boards after our own moves, with counts. A repeated board leads to a draw.
const seen = new Map();

// Returns the best move. Boards are lists of 64 pieces as in FEN, from a1 to h8; free squares are "".
function decide(me, state, config) {
  const board = readFen(state.fen);
  let best = null;
  let bestScore = null;
  let bestKey = null;
  for (const move of state.legal_moves) {
    const [after, gain] = play(board, move);
    const key = after.join(",");
    const score = gain + outlook(after, state.turn, square(move.slice(2, 4))) - 50 * (seen.get(key) ?? 0);
    if (best === null || score > bestScore) [best, bestScore, bestKey] = [move, score, key];
  }
  if (best === null) return [];
  seen.set(bestKey, (seen.get(bestKey) ?? 0) + 1);
  return [{ action: "move", move: best }];
}

// Reads the board of a FEN, which lists ranks from the eighth to the first.
function readFen(fen) {
  const board = Array(64).fill("");
  fen.split(" ")[0].split("/").forEach((pieces, row) => {
    let file = 0;
    for (const char of pieces) {
      if (char >= "1" && char <= "8") {
        file += Number(char);
      } else {
        board[(7 - row) * 8 + file] = char;
        file += 1;
      }
    }
  });
  return board;
}

// Returns the coordinates of a square such as e4.
function square(name) {
  return (Number(name[1]) - 1) * 8 + "abcdefgh".indexOf(name[0]);
}

const file = (at) => at % 8;
const rank = (at) => Math.floor(at / 8);
const value = (piece) => VALUES[piece.toLowerCase()];
const isWhite = (piece) => piece !== piece.toLowerCase();

// Returns the board after a legal move in UCI notation, and the move's gain.
function play(board, move) {
  const [start, end] = [square(move.slice(0, 2)), square(move.slice(2, 4))];
  const after = board.slice();
  let piece = after[start];
  after[start] = "";
  let gain = after[end] ? value(after[end]) : 0;
  if (piece.toLowerCase() === "p" && file(start) !== file(end) && !after[end]) {
    // En passant: the captured pawn is beside the start.
    after[rank(start) * 8 + file(end)] = "";
    gain = VALUES.p;
  }
  if (piece.toLowerCase() === "k" && Math.abs(file(start) - file(end)) === 2) {
    // Castling: the rook jumps over the king.
    const corner = rank(start) * 8 + (end > start ? 7 : 0);
    after[(start + end) / 2] = after[corner];
    after[corner] = "";
  }
  if (move.length > 4) {
    gain += VALUES[move[4]] - VALUES.p;
    piece = isWhite(piece) ? move[4].toUpperCase() : move[4];
  }
  after[end] = piece;
  return [after, gain];
}

// Rates a board for the side that has just moved a piece to the square `moved`.
function outlook(board, weAreWhite, moved) {
  const squares = [...board.keys()].filter((at) => board[at]);
  const ours = squares.filter((at) => isWhite(board[at]) === weAreWhite);
  const theirs = squares.filter((at) => isWhite(board[at]) !== weAreWhite);
  let score = 0;
  let threat = 0;
  for (const at of ours) {
    const kind = board[at].toLowerCase();
    const attackers = theirs.filter((start) => attacks(board, start, at)).map((start) => value(board[start]));
    if (attackers.length > 0 && kind !== "k") {
      // A capture of a guarded piece is answered by a recapture.
      const isGuarded = ours.some((start) => attacks(board, start, at));
      threat = Math.max(threat, VALUES[kind] - (isGuarded ? Math.min(...attackers) : 0));
    }
    // Pieces are stronger in the center, pawns when advanced.
    if (kind === "p") score += 3 * (weAreWhite ? rank(at) : 7 - rank(at));
    else if (kind !== "k") score -= Math.abs(2 * file(at) - 7) + Math.abs(2 * rank(at) - 7);
  }
  const isCheck = theirs.some((at) => board[at].toLowerCase() === "k" && attacks(board, moved, at));
  return score - threat + (isCheck ? 20 : 0);
}

// True if the piece on `start` could capture on `end`.
function attacks(board, start, end) {
  const kind = board[start].toLowerCase();
  const [dx, dy] = [file(end) - file(start), rank(end) - rank(start)];
  const [far, near] = [Math.max(Math.abs(dx), Math.abs(dy)), Math.min(Math.abs(dx), Math.abs(dy))];
  if (kind === "p") return Math.abs(dx) === 1 && dy === (isWhite(board[start]) ? 1 : -1);
  if (kind === "n") return far === 2 && near === 1;
  if (kind === "k") return far === 1;
  const isStraight = near === 0 && far > 0;
  const isDiagonal = near === far && far > 0;
  if (!((isStraight && "rq".includes(kind)) || (isDiagonal && "bq".includes(kind)))) return false;
  const stride = (end - start) / far;
  for (let at = start + stride; at !== end; at += stride) if (board[at]) return false;
  return true;
}

colosseum.run("chess-js", "1", decide);
