// What the arena calls. The first import comes first, so that a script finds the world as it should be from its first line on.

import { run } from "arena:session";
import * as script from "arena:script";

export const call = (input) => run(script.createChallenge, input);
