// `@specarena/engine/types`: of all its types one is there when a script runs.

/** Refuses what a player does. The player is told the message, and programs go by the code. */
export class ChallengeOperatorError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "ChallengeOperatorError";
    this.code = code;
  }
}
