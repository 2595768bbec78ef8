// Whether something must be waited for. What a client sent may have a member of that name, and is none.

export const isPromise = (value: unknown): value is Promise<unknown> =>
  typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
