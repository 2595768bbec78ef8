// Where in a plugin's files something was thrown, for its author to mend.

/** "file:line:column": of a syntax error it stands in the message, of a throw in the first frame that is a file's. */
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

/** Of an error that was not written to be read: its kind, and where to look. */
export function describeUnexpectedError(error: unknown): string {
  const what = error instanceof Error ? error.name : typeof error;
  const place = errorLocationOf(error);
  return `it broke off (${place === undefined ? what : `${what} at ${place}`})`;
}
