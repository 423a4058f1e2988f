// Expected: [1,[2],3,"async",5,true,"7",8,[9],10,11,{"a":12},13,"over"]
const one = (a: number):
  number => a;
const two = (
  a: number, // a comment with =>
): Array<
  number
> => [a];
const three = <T,>(x: T): T => x;
const four = async <
  T extends string
>(x: T): Promise<
  T
> => x;
function five<T>(x: T) {
  return <
    U
  >(y: U) => [x, y] as [T, U];
}
const six = (x: unknown): x is
  string => typeof x === "string";
const seven = (x: number):
  /* two
     lines */ string => String(x);
const eight = (x: number): number /* one line */ => x;
function* nine<T>(x: T): Generator<T> {
  yield <
    T
  >x;
}
const ten = ({ a }: { a: number }, ...rest: number[]): number => a;
const eleven = (x?) => x;
const twelve = (a: number): { a: number } => ({ a } as { a: number });
function thirteen(x: unknown) {
  return <number
  >
  x;
}
const over: (this: unknown, x: string) => x is "over" = (x: string): x is "over" => x === "over";
const promise = four("async");
export const result = [
  one(1), two(2), three(3), promise instanceof Promise ? "async" : "", five(5)(6)[0], six("x"), seven(7), eight(8),
  [...nine(9)], ten({ a: 10 }), eleven(11), twelve(12), thirteen(13), over("over") ? "over" : "",
];
