// Expected: ["called 0",[2,1],"ended",3,"`t`",5,[1,2],"f","g",[9],"last"]
const log: unknown[] = []
const note = (x: unknown) => { log.push(x) }
let called = 0
const f = (x?: unknown) => { called++; return x }
const g = f as (x?: unknown) => unknown
;(note as (x: unknown) => void)("called " + called)
let a = 1, b = 2
type Swap = [number, number]
[a, b] = [b, a]
note([a, b])
const end = "ended" as string
(note)(end)
interface Nothing {}
(note)(3)
const t = f as unknown
`t`
note("`t`")
let five: number
(five as number) = 5
note(five!)
let list = [1, 2] satisfies number[]
[0].forEach(() => note(list))
declare let nothing: number
(note)("f")
type Long = {
  a: number
}
["g"].forEach(note)
function overload(x: number): number
function overload(x: string): string
function overload(x: unknown) { return x }
(overload as unknown)
if (a) b as number
else note("not here")
do b as number
while (false)
class Fields {
  private one = 9
  public ["two"]: number = 2
  public get?: number
  private *three() { yield this.one as number }
  static four = 4 as number
  declare five: number
  [key: string]: unknown
  ["six"] = 6
  list() { return [...this.three()] }
}
note(new Fields().list())
export type Exported = number
["last"].forEach(note)
export const result = log
