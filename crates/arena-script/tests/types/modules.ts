// Expected: [1,"value",["type","shape"],"default",2,"all"]
import type { Shape } from "./gone.js";
import type Whole from "./gone.js";
import { type Kind, value, Unused } from "./part.js";
import standard, { type Shape as Other } from "./part.js";
import unusedDefault, { number, Shape as Third } from "./part.js";
import * as part from "./part.js";
import usedDefault, * as unusedAll from "./part.js";
import { Kind as OnlyType } from "./part.js";
export { value, type Kind } from "./part.js";
export { type Shape as Fourth } from "./part.js";
export type * from "./gone.js";
export * from "./part.js";
const kind: Kind = "type";
const shape: Other & Third = { shape: "shape" };
let whole: Whole | Shape | OnlyType | Unused | undefined;
export { kind, type Kind as Fifth, shape, };
export default interface Standard { a: number }
export const result = [number, value, [kind, shape.shape], standard, usedDefault === standard ? 2 : 0, part.all];
export { whole };
