// Expected: ["kept",{"deck":[1,2],"size":2,"name":"n","seat":1},"static","private",[1,2],"x","computed",3,5,"derived","get","text",true]
interface Named { name: string }
abstract class Base<T> implements Named, Iterable<T> {
  name: string = "n";
  protected abstract readonly kind: string;
  abstract describe(): string;
  protected kept: string;
  declare readonly absent: T;
  private static readonly label: string = "static";
  #secret: string = "private";
  #later?: number;
  static of: typeof Base;
  constructor(protected readonly items: T[]) { this.kept = "kept"; this.#later = 3; }
  *[Symbol.iterator](): IterableIterator<T> { yield* this.items; }
  public get secret(): string { return this.#secret; }
  protected set secret(to: string) { this.#secret = to; }
  get later(): number { return this.#later!; }
  static get label2(): string { return Base.label; }
  optional?(): void;
}
class Derived extends Base<number> implements Named {
  kept: string;
  protected override readonly kind = "derived";
  public readonly ["comp" + "uted"]: string = "computed";
  readonly = "x"; private = 3; static; get; set; declare; abstract;
  [index: string]: unknown;
  constructor(public deck: number[], private size?: number, readonly seat = 1)
  {
    super(deck)
    this.size ??= deck.length; this.get = "get"
  }
  override describe(): string { return this.kind }
  private async hidden<T>(x: T): Promise<T> { return x }
  protected static create<T extends number>(this: new (deck: T[]) => Derived, ...deck: T[]): Derived { return new this(deck) }
  static make(): Derived { return Derived.create<number>(1, 2); }
}
class Plain {
  constructor(public a: number, b?: string, protected c: number = 4) { "use strict directive"; this.a += c; }
}
const Expression = class<T> extends (Map as MapConstructor)<string, T> implements Named { name = "text" as string };
const one = Derived.make();
export default abstract class Exported { abstract a(): void }
export const result = [
  one["kept"], { deck: one.deck, size: one["size"], name: one.name, seat: one.seat }, Base.label2, one.secret, [...one],
  one.readonly, one["computed"], one.private, new Plain(1).a, one.describe(), one.get, new Expression<number>().name,
  !("absent" in one) && !("declare" in one) && typeof Exported === "function" && one.later === 3,
];
