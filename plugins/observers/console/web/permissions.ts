// What the reader of these pages may do: the commands that the gateway listed at sign-in. A page asks for nothing else and offers nothing else,
// so that no part of it is a refusal.

let allowedCommands: ReadonlySet<string> = new Set();

/** Called at sign-in and at sign-out. */
export function setAllowedCommands(commands: readonly string[]): void {
  allowedCommands = new Set(commands);
}

export const isAllowed = (...commands: readonly string[]): boolean =>
  commands.every((each) => allowedCommands.has(each));
