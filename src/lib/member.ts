/** A member of any name that a client or an upstream chose: an assignment to "__proto__" is none. */
export function put(into: object, name: string, value: unknown): void {
  if (name === "__proto__")
    Object.defineProperty(into, name, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  else (into as Record<string, unknown>)[name] = value;
}
