/** True when two types are one: neither wider, and no `any` in the way. */
export type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** `is<Same<A, B>>()` compiles when A is B. */
export const is = <_T extends true>(): void => {};
