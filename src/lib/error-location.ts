// Finds the place in a plugin's files where an error was thrown, for the plugin's author.

/**
 * Returns "file:line:column" of an error, or undefined. For a syntax error, the location is taken
 * from the message. For other errors, it is taken from the first stack frame with a file name.
 */
export function errorLocationOf(error: unknown): string | undefined {
  const { message = "", stack = "" } = error instanceof Error ? error : {};
  const locationInMessage = /^\s*((?:[A-Za-z]:)?[/\\][^\n:?]+:\d+(?::\d+)?)\s*$/m.exec(
    message,
  )?.[1];
  if (locationInMessage !== undefined) return locationInMessage;
  const frame = /^\s+at (?:.*\()?(?:file:\/\/)?(\/[^\n:?()]+)(?:\?[^\n:]*)?:(\d+:\d+)\)?$/m.exec(
    stack,
  );
  return frame && !frame[1]!.includes("/node_modules/jiti/")
    ? `${frame[1]}:${frame[2]}`
    : undefined;
}

/** Describes an error that was not written for a reader: its type, and where it was thrown. */
export function describeUnexpectedError(error: unknown): string {
  const what = error instanceof Error ? error.name : typeof error;
  const place = errorLocationOf(error);
  return `it failed (${place === undefined ? what : `${what} at ${place}`})`;
}
