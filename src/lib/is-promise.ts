// Whether a value must be awaited. A `then` that is not a function does not count, because JSON
// from a client can have a member of that name.

export const isPromise = (value: unknown): value is Promise<unknown> =>
  typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
