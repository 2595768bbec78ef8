// What the reader of these pages may do: the commands that the gateway listed at sign-in. A page asks for nothing else and offers nothing else,
// so that no part of it is a refusal.

let allowed: ReadonlySet<string> = new Set();

/** Called at sign-in and at sign-out. */
export function allow(commands: readonly string[]): void {
  allowed = new Set(commands);
}

export const may = (...commands: readonly string[]): boolean =>
  commands.every((each) => allowed.has(each));
