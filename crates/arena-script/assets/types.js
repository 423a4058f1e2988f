// `@specarena/engine/types`: the only export that exists at run time.

/** The refusal of an action. The player gets the message; programs use the code. */
export class ChallengeOperatorError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "ChallengeOperatorError";
    this.code = code;
  }
}
