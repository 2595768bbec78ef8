// The commands that the reader may run, as listed by the gateway at sign-in. Pages call and offer
// only these, so no part of a page shows a permission error.

let allowedCommands: ReadonlySet<string> = new Set();

/** Called at sign-in and at sign-out. */
export function setAllowedCommands(commands: readonly string[]): void {
  allowedCommands = new Set(commands);
}

export const isAllowed = (...commands: readonly string[]): boolean =>
  commands.every((each) => allowedCommands.has(each));
