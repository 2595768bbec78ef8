/**
 * Sets a property whose name a client or an upstream chose. A plain assignment to "__proto__" would
 * set the prototype.
 */
export function setOwnProperty(into: object, name: string, value: unknown): void {
  if (name === "__proto__")
    Object.defineProperty(into, name, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  else (into as Record<string, unknown>)[name] = value;
}
