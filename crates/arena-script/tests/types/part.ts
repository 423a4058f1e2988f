export type Kind = "type";
export interface Shape { shape: string }
export interface Unused { a: number }
export const value = "value", number = 1, all: string = "all";
export default "default" as string;
