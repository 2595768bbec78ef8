/**
 * Freezes a value and all values in it, so that a plugin that changes its arguments throws. Buffers
 * cannot be frozen.
 */
export function deepFreeze<T>(value: T, seen = new Set<unknown>()): T {
  if (typeof value !== "object" || value === null || seen.has(value)) return value;
  seen.add(value);
  if (ArrayBuffer.isView(value) || !isPlainObject(value)) return value;
  for (const key of Reflect.ownKeys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, key)!;
    // Getters are skipped. The host evaluates them when they are read for the first time, and
    // freezing must not do that.
    if ("value" in property) deepFreeze(property.value, seen);
  }
  return Object.freeze(value);
}

/** Signals, URLs, and similar objects have internal state, so they are not frozen. */
function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null;
}
