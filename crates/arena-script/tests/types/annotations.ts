// Expected: [3,"ab",[1,2],7,"x","none",6,"caught",2,"k:1","abc",true,[1,"two"],4,9]
interface Point {
  readonly x: number;
  y?: number;
  [key: string]: number | undefined;
  distance?(to: Point): number;
  new (x: number): Point;
}
type Pair<T, U = T> = [first: T, second?: U, ...rest: U[]];
type Getters<T> = { readonly [K in keyof T as `get${Capitalize<string & K>}`]-?: () => T[K] };
type Flat<T> = T extends Array<infer U> ? /* a comment with ) and { */ U : never;
declare const outside: { unused: unique symbol };
declare function outsideToo(x: number): void;
declare module "nowhere" {
  export const x: number;
}
declare global {
  interface Window { y: number }
}
declare namespace Ambient {
  const z: number;
}
namespace OnlyTypes {
  export type T = number;
  export interface I { a: T }
}
declare enum Gone { A }
declare abstract class Missing {
  abstract f(): void;
}

function add(a: number, b: number = 1): number {
  return a + b;
}
function join(this: void, a: string, b?: string): string;
function join(this: void, ...parts: string[]): string;
function join(this: void, ...parts: string[]): string {
  return parts.filter((part): part is string => part !== undefined).join("");
}
function thisOnly(this: { value: number }): number {
  return this.value;
}
function assertText(x: unknown): asserts x is string {
  if (typeof x !== "string") throw new Error("no text");
}
function identity<const T extends readonly unknown[]>(x: T): T {
  return x;
}
let later!: number;
later = 7;
let untyped: any, typed: `a${string}` = "ab", { x, y = 2 }: { x: number; y?: number } = { x: 1 };
const [first, second]: Pair<number> = [1, 2];
function optional(a?: string, { b = "none" }: { b?: string } = {}): string {
  return a ?? b;
}
assertText("x");
let message: string;
try {
  throw new Error("caught");
} catch (error: unknown) {
  message = (error as Error).message;
}
for (const one of [1, 2] as const) untyped = one;
for (let i: number = 0, n: number = 2; i < n; i++) later += 1;
for (const key in { k: 1 } as Record<string, number>) message += `${key as string}` && "";
const object = {
  async method<T>(this: unknown, x: T): Promise<T> { return x; },
  get size(): number { return 4; },
  set size(to: number) { untyped = to; },
  *generate(): Generator<number, void, unknown> { yield 9; },
};
function dictionary<K extends string, V>(key: K, value: V): `${K}:${string}` {
  return `${key}:${String(value)}` as `${K}:${string}`;
}
const map = new Map<string, Array<Map<string, number>>>();
map.set("a", []);
const tagged = String.raw<string>`abc`;
export type { Point, Pair };
export type Later = typeof later;
export interface Also extends Point, OnlyTypes.I {}
const generated: number[] = [...object.generate()];
export const result: unknown[] = [
  add(2), typed, identity([1, 2]), later - 2, "x", optional(undefined, {}), x + y + thisOnly.call({ value: 3 }), message,
  untyped, dictionary("k", 1), tagged, map.has("a"), [first, "two"], object.size, generated[0],
];
export { type Getters, type Flat };
