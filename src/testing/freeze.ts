/** Freezes a value to the ground, so that a plugin that changes what it was handed throws. Bytes cannot be frozen. */
export function deepFreeze<T>(value: T, seen = new Set<unknown>()): T {
  if (typeof value !== "object" || value === null || seen.has(value)) return value;
  seen.add(value);
  if (ArrayBuffer.isView(value) || !isPlainObject(value)) return value;
  for (const key of Reflect.ownKeys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, key)!;
    // Getters are the host's own laziness: reading one here would take it away.
    if ("value" in property) deepFreeze(property.value, seen);
  }
  return Object.freeze(value);
}

/** Signals, URLs and the like keep state of their own. */
function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === Array.prototype || prototype === null;
}
