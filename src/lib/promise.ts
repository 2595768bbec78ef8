// Whether something must be waited for. What a client sent may have a member of that name, and is none.

export const isPromise = (said: unknown): said is Promise<unknown> =>
  typeof (said as { readonly then?: unknown } | null | undefined)?.then === "function";
