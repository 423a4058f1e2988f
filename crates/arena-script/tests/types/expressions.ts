// Expected: [9,9,true,-1,16,5,3,"x",[1],6,true,2,"object",1,{"a":1},4,"fn",7,["readonly"],null,true]
const a = 1, b = 2, c = 3;
const product = (a + b as number) * c;
const again = a + b as number satisfies number + 6;
const less = (a as number) < b;
const sum = a + b as number + 0 - 4;
const power = (b as number) ** 4;
const text: unknown = "x";
const objects: { v?: { w: number } | null; list: number[] }[] = [{ v: { w: 3 }, list: [1] }];
const chain = objects[0]!.v!.w;
const short = (objects[1]?.v!.w as number | undefined) ?? null;
let count = 5;
count!++;
(count as number)--;
(<any>count)++;
const asserted = <string>text;
const typeName = typeof <object>{ a: 1 };
const functional = <() => number>function () { return a; };
const shape = <{ a: number }>{ a: 1 };
const as = 4, satisfies = 5, type = 7, of = 8;
const named = as as number;
const words = ["readonly"] as const;
const instance = new Map<string, number>;
const call = Math.max<number>;
class Box<T> { constructor(readonly value: T) {} static of<T>(x: T) { return new Box<T>(x); } }
const compared = as<type && type>of === false;
const awaited = !text as boolean === false;
export const result = [
  product, (a + b as number) * c, less, sum, power, satisfies, chain, asserted, objects[0].list as number[],
  count, awaited, b as 2, typeName, functional(), shape, named, call(1, 2) === 2 ? "fn" : "", type, words, short,
  compared && instance.size === 0 && Box.of(1).value === 1 && again === 9,
];
