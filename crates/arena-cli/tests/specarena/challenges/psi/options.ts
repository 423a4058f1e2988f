export interface PsiOptions {
  players: number;
  range: [number, number];
  intersectionSize: number;
  setSize: number;
}
